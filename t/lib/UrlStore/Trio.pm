package UrlStore::Trio;

# Three private PostgreSQL servers, of which one is the primary and the others
# are standbys, ANY 1 of them synchronous; and what an operator does when the
# primary is lost.
#
#     my $pg = UrlStore::Trio->new;
#     $pg->conninfo                    of all three
#     $pg->primary                     a UrlStore::Postgres
#     $pg->fail('kill');               the primary ends: how as stop() has it
#     $pg->fail('stay');               it goes on, but has no standby any more
#     $pg->elect;                      the standby that has most is promoted
#     $pg->rejoin;                     the old one becomes a standby of it
#
# elect() keeps the one rule of such a group: first no standby receives from the
# old primary any more, so that it can confirm nothing; then the one with the
# most WAL is promoted.  Of two standbys, ANY 1 of which has confirmed a commit,
# that one has it.

use strict;
use warnings;

use UrlStore::Postgres;
use UrlStore::Test ();


sub new
{
    my ($class) = @_;

    my $a = UrlStore::Postgres->new(name => 'a',
        synchronous_standby_names => 'ANY 1 (a, b, c)')->start;
    my $self = bless { primary => $a, old => undef }, $class;

    $self->{all} = [ $a, map { $a->standby($_)->start } 'b', 'c' ];

    return $self;
}


sub primary { $_[0]{primary} }
sub all { @{ $_[0]{all} } }
sub standbys { my ($self) = @_; grep { $_ != $self->{primary} } $self->all }


# options as those of UrlStore::Postgres

sub conninfo
{
    my ($self, %o) = @_;

    return $self->{primary}->conninfo(hosts => $self->{all}, %o);
}


sub fail
{
    my ($self, $how) = @_;

    $self->{old} = $self->{primary};
    $self->{old}->stop($how) if $how ne 'stay';
}


sub elect
{
    my ($self) = @_;

    my @standbys = grep { $_ != $self->{old} } $self->all;

    for my $s (@standbys) {
        delete $s->{upstream};
        $s->set;
    }

    for my $s (@standbys) {
        UrlStore::Test::wait_until(20, sub {
            !$s->sql('SELECT count(*) FROM pg_stat_wal_receiver');
        }) or die "$s->{name} still receives";
    }

    my @end = map { $_->sql("SELECT greatest(pg_last_wal_receive_lsn(), "
        . "pg_last_wal_replay_lsn()) - '0/0'") } @standbys;
    my ($new, $other) = $end[0] >= $end[1] ? @standbys : reverse @standbys;

    $new->promote;
    $self->{primary} = $new;
    $other->{upstream} = $new;
    $other->set;

    return $new;
}


sub rejoin
{
    my ($self) = @_;

    my $old = delete $self->{old} or return;

    $old->stop('immediate');

    # the file that pg_rewind compares has the new timeline after it

    $self->{primary}->sql('CHECKPOINT');
    $old->follow($self->{primary});
}


# a server that was stopped goes on as what it was

sub restart { my ($self) = @_; delete($self->{old})->start }


1;
