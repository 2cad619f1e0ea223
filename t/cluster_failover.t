#!/usr/bin/perl

# Failover under load: two nodes with replicate= and a router over three
# PostgreSQL servers, ANY 1 of two standbys synchronous, while all of them are
# killed, stopped, cut off, and their commits cancelled.  Clients, some of them
# with slow bodies, some half-closed, record every request and its answer.  The
# exact checker (UrlStore::History) judges: no acknowledged answer is lost, no
# id is given twice, no URL has two ids, nothing is denied after an answer that
# had it.  In the end both nodes have the same, also after a start from the log,
# or from a directory (path=).
#
#     US_FAILOVERS=200 prove t/cluster_failover.t     so many (9)
#     US_SEED=7                                       the first history's seed
#     US_FAULT=stop                                   only this fault

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(clock_gettime sleep CLOCK_MONOTONIC);

use UrlStore::Nodes;
use UrlStore::Proxy;
use UrlStore::Test;
use UrlStore::Trio;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $left = $ENV{US_FAILOVERS} // 9;
my $seed = $ENV{US_SEED} // 1;
my $each = $left > 20 ? 20 : 5;      # failovers of a history

# histories differ in these: a standby that waits for the end of a lease, too

my @zones = ('lease=1s takeover=2s', 'lease=3s takeover=1s');

# and in the nodes that have a directory, which is that of the history before

my $path = 'path=%%DIR%%/cache snapshot=16k';
my @paths = (['', ''], [$path, ''], [$path, $path], ['', $path]);

srand $seed;

my $pg = UrlStore::Trio->new;
my @proxies = map { [map { UrlStore::Proxy->new($_->port) } $pg->all] } 0 .. 1;
my $n = UrlStore::Nodes->new(map { $pg->conninfo(
    ports => [map { $_->port } @{ $proxies[$_] }]) } 0 .. 1);
my @nodes = $n->nodes;

# of another log, when a history begins

$_->allow(qr/what was in the path is kept in/) for @nodes;

# --- the faults: each returns the seconds to the first accepted add after it

my %fault = (
    nginx => sub {
        my $t = holder();

        $t->kill_all;
        my $s = accepted(other($t));
        $t->start;

        return $s;
    },
    worker => sub {
        my $t = holder();
        my @pids = $t->worker_pids;

        $t->kill_worker('KILL', $_) for rand() < .5 ? @pids : $pids[0];

        return accepted(@nodes);
    },
    stop => sub {
        my $t = holder();
        my @pids = ($t->pid, $t->worker_pids);

        kill STOP => @pids;
        my $s = accepted(other($t));
        sleep rand 1;
        kill CONT => @pids;

        return $s;
    },
    pause => sub {
        my $t = holder();
        my @pids = ($t->pid, $t->worker_pids);

        kill STOP => @pids;
        sleep 0.5 + rand 3;
        kill CONT => @pids;

        return accepted(@nodes);
    },
    postgres => sub {
        $pg->fail(rand() < .5 ? 'kill' : 'immediate');
        $pg->elect;
        my $s = accepted(@nodes);
        $pg->rejoin;

        return $s;
    },
    stay => sub {

        # the old server is writable for ever, and all nodes reach it

        $pg->fail('stay');
        $pg->elect;
        my $s = accepted(@nodes);
        sleep rand 1;
        $pg->rejoin;

        return $s;
    },
    both => sub {
        my $t = holder();

        $pg->fail('kill');
        $t->kill_all;
        $pg->elect;
        my $s = accepted(other($t));
        $t->start;
        $pg->rejoin;

        return $s;
    },
    wait => sub {
        $_->pause for $pg->standbys;
        sleep 0.3 + rand 1;

        my $how = int rand 4;

        if ($how < 2) {
            my $f = qw(pg_cancel_backend pg_terminate_backend)[$how];

            $pg->primary->sql("SELECT count($f(pid)) FROM pg_stat_activity"
                . " WHERE usename = 'urlstore'");
            sleep rand 1;
            $_->resume for $pg->standbys;

            return accepted(@nodes);
        }

        $pg->fail('immediate');
        $_->resume for grep { $_ != $pg->primary } $pg->all;

        if ($how == 2) {
            $pg->restart;
            return accepted(@nodes);
        }

        $pg->elect;
        my $s = accepted(@nodes);
        $pg->rejoin;

        return $s;
    },
    answers => sub {
        my $t = holder();
        my @p = @{ $proxies[$t == $nodes[1]] };
        my $how = ('now swallow', 'now hang', 'refuse', 'hang', 'cut ~3000')
            [rand 5];

        $_->mode($how) for @p;
        sleep 0.5 + rand 4;
        $_->now('pass') for @p;

        return accepted(@nodes);
    },
    split => sub {
        my $k = holder() == $nodes[1] ? 1 : 0;
        my ($i) = grep { ($pg->all)[$_] == $pg->primary } 0 .. 2;

        # the node and its server see each other alone

        $proxies[$k][$_]->mode('refuse') for grep { $_ != $i } 0 .. 2;
        $proxies[1 - $k][$i]->mode('refuse');
        $pg->fail('stay');
        $pg->elect;
        my $s = accepted($nodes[1 - $k]);
        sleep rand 1;
        $proxies[$k][$_]->mode('pass') for grep { $_ != $i } 0 .. 2;
        $pg->rejoin;
        $proxies[1 - $k][$i]->mode('pass');

        return $s;
    },
);

my (@kinds, %took);

while ($left > 0) {
    my $some = $left < $each ? $left : $each;
    my $why = history($seed, $some);

    is($why, '', "history $seed");
    last if $why;
    $left -= $some;
    $seed++;
}

for my $kind (sort keys %took) {
    my @s = sort { $a <=> $b } @{ $took{$kind} };

    diag(sprintf '%-8s %3d times, first accepted add after %.1f s (median), '
        . '%.1f s at most', $kind, scalar @s, $s[@s / 2], $s[-1]);
}

diag(join ', ', map { $n->sum->{$_} . " $_" } sort keys %{ $n->sum });


# a new log, so many failovers: '', or what was wrong

sub history
{
    my ($run, $some) = @_;

    srand $run;

    $n->conf($zones[$run % @zones], @{ $paths[($run + 1) / 2 % @paths] });

    my $why = $n->begin(sub { $pg->primary->sql(
        'TRUNCATE urlstore_shard, urlstore_log, urlstore_base') });
    my @times;

    return $why if $why;

    $n->load(4, $run, 'slow');

    for my $i (1 .. $some) {
        if (!@kinds) {
            @kinds = sort { rand() <=> .5 } $ENV{US_FAULT} // keys %fault;
        }

        my $kind = shift @kinds;

        sleep 0.2 + rand;
        push @times, [clock_gettime(CLOCK_MONOTONIC), "failover $i, $kind"];

        my $s = eval { $fault{$kind}() };

        if (!$s) {
            $why = "$kind: " . ($@ || 'no add is accepted any more');
            last;
        }

        push @{ $took{$kind} }, $s;
        diag(sprintf 'history %d, failover %d: %s, %.1f s', $run, $i, $kind,
            $s) if $each > 5;
    }

    sleep 0.2;
    $n->unload;

    return $why if $why;

    $why = $n->judge(holder()) or return '';

    my ($of) = grep { $_->[0] < $n->at } reverse @times;

    return $why . ($of ? ": $of->[1]" : '');
}


# the node whose term is the highest

sub holder
{
    my $name = $pg->primary->sql('SELECT holder FROM urlstore_shard');

    return $nodes[$name eq 'n1'];
}


sub other { return $n->other(@_) }
sub accepted { return $n->accepted(@_) }
