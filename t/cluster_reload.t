#!/usr/bin/perl

# Reloads and killed workers of nodes with replicate=, under load, over a pair
# of PostgreSQL servers: the primary stays the same, no worker needs a second to
# exit, also while no commit returns, nginx reports nothing, and all answers are
# kept (UrlStore::History).
#
#     US_RELOADS=1000 prove t/cluster_reload.t     so many, and kills (20)
#     US_SEED=7

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep time);

use UrlStore::Nodes;
use UrlStore::Postgres;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $runs = $ENV{US_RELOADS} // 20;

srand($ENV{US_SEED} // 1);

my $main = UrlStore::Postgres->new->start;
my $standby = $main->standby('b')->start;

$main->set(synchronous_standby_names => 'b');

my $n = UrlStore::Nodes->new($main->conninfo, $main->conninfo);

$n->conf('takeover=30s');
is($n->begin(sub { }), '', 'two nodes');

my $term = term();
my (@took, %did);

$n->load(3, 1);

for my $i (1 .. $runs) {
    my $t = ($n->nodes)[rand 2];
    my @pids = $t->worker_pids;

    if ($i % 20 == 10) {
        stalled();

    } elsif (rand() < .5) {
        push @took, leave($t);
        $did{reloads}++;

    } else {
        $t->kill_worker('KILL', $_) for rand() < .3 ? @pids : $pids[0];
        $did{kills}++;
        wait_until(5, sub { $t->worker_pids == 2 });
    }

    sleep rand .2;
}

ok($n->accepted($n->nodes), 'adds go on');
$n->unload;
is(term(), $term, 'the primary is the same');

@took = sort { $a <=> $b } @took;
cmp_ok($took[@took / 2], '<', 0.5 * longer(), 'workers exit soon');

my $slow = grep { $_ >= longer() } @took;

# one that was not given the CPU may take longer

cmp_ok($slow, '<=', @took / 50, 'none needs a second');
is($n->judge(($n->nodes)[holder() eq 'n1']), '', 'all answers are kept');

diag(sprintf '%d reloads, %d of them while commits hang, %d kills; exit of the '
    . 'workers: median %.3f s, at most %.3f s, %d of 1 s or more',
    $did{reloads}, $did{stalled} // 0, $did{kills}, $took[@took / 2], $took[-1],
    $slow);
diag(join ', ', map { $n->sum->{$_} . " $_" } sort keys %{ $n->sum });


# a reload: the seconds from when the first old worker was asked to exit until
# all have

sub leave
{
    my ($t) = @_;

    my %old = map { $_ => 1 } $t->worker_pids;
    my $asked;

    kill HUP => $t->pid;

    wait_until(30, sub {
        my %now = map { $_ => 1 } $t->worker_pids;

        $asked //= time if grep { !$now{$_} } keys %old;
        return $asked && !grep { alive($_) } keys %old;
    }) or return 99;

    return time - $asked;
}


# a reload of the primary while no commit returns, and requests were refused

sub stalled
{
    my $t = ($n->nodes)[holder() eq 'n1'];

    $standby->pause;
    wait_until(20, sub {
        my $r = $t->client->request('GET', '/health') or return 0;
        return $r->{body} =~ /stalled/;
    });

    push @took, leave($t);
    $did{reloads}++;
    $did{stalled}++;
    $standby->resume;
    $n->accepted($t);
}


sub term { return $main->sql('SELECT max(term) FROM urlstore_log') }
sub holder { return $main->sql('SELECT holder FROM urlstore_shard') }
