package UrlStore::Replica;

# What a primary and its replica have, compared; both have the zone at /.

use strict;
use warnings;

use base 'Exporter';

use UrlStore::Test ();

our @EXPORT = qw(level reaches differs content);


# waits until the replica has all that the primary has published, and knows that

sub level
{
    my ($primary, $replica, $seconds) = @_;

    return UrlStore::Test::wait_until($seconds // 10, sub {
        my $p = _json($primary, '/stats') or return 0;
        my $r = _json($replica, '/health') or return 0;

        return $r->{status} eq 'replica' && $r->{connected}
            && $r->{lsn} == $p->{published} && $r->{epoch} == $p->{epoch}
            && defined $r->{lag_seconds};
    });
}


# the same of what it has published by now, while clients go on

sub reaches
{
    my ($primary, $replica, $seconds) = @_;
    my $lsn;

    return UrlStore::Test::wait_until($seconds // 10, sub {
        $lsn //= (_json($primary, '/stats') // {})->{published};

        my $r = _json($replica, '/health') or return 0;

        return defined $lsn && $r->{status} eq 'replica' && $r->{lsn} >= $lsn;
    });
}


sub _json
{
    my ($t, $path) = @_;

    my $r = $t->get($path);

    return $r && $r->{body} =~ /^\{/ ? $r->json : undef;
}


# all ids with their URLs, deleted ones and marks

sub content
{
    my ($t, @marks) = @_;
    my $text = '';

    for my $what ('deleted=1', map { "mark=$_" } @marks) {
        my $from = 0;

        while () {
            my $r = $t->get("/urls?$what&from=$from&limit=100000&summary=1");

            return "$r->{status} $r->{body}" if $r->{status} != 200;

            my ($next) = $r->{body} =~ s/^# next=(\d+)\n//m ? $1 : $from;
            $text .= "$what\n$r->{body}";
            last if $next <= $from;
            $from = $next;
        }
    }

    return $text;
}


# '' if both have the same, or the first line that differs

sub differs
{
    my ($primary, $replica, @marks) = @_;

    my $p = content($primary, @marks);
    my $r = content($replica, @marks);

    return '' if $p eq $r;

    my @p = split /^/, $p;
    my @r = split /^/, $r;

    for my $i (0 .. ($#p > $#r ? $#p : $#r)) {
        my ($a, $b) = ($p[$i] // "nothing\n", $r[$i] // "nothing\n");

        return "line $i: primary $a replica $b" if $a ne $b;
    }

    return 'they differ';
}


1;
