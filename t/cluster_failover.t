#!/usr/bin/perl

# Failover under load: two nodes with replicate= and a router over three
# PostgreSQL servers, ANY 1 of two standbys synchronous, while all of them are
# killed, stopped, cut off, and their commits cancelled.  Clients record every
# request and its answer.  The exact checker (UrlStore::History) judges: no
# acknowledged answer is lost, no id is given twice, no URL has two ids, nothing
# is denied after an answer that had it.  In the end both nodes have the same,
# also after they have read the log anew.
#
#     US_FAILOVERS=200 prove t/cluster_failover.t     so many (9)
#     US_SEED=7                                       the first history's seed
#     US_FAULT=stop                                   only this fault

use strict;
use warnings;

use lib 't/lib';
use POSIX qw(_exit);
use Time::HiRes qw(clock_gettime sleep time CLOCK_MONOTONIC);

use UrlStore::History;
use UrlStore::Proxy;
use UrlStore::Test;
use UrlStore::Trio;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $MODULE = "$UrlStore::Test::TOP/build/ngx_http_urlstore_postgres_module.so";
my $CLIENTS = 4;                     # and one that only looks up
my $RATE = 300;                      # URLs that are found in a second

my $left = $ENV{US_FAILOVERS} // 9;
my $seed = $ENV{US_SEED} // 1;
my $each = $left > 20 ? 20 : 5;      # failovers of a history
my $cluster = '00112233445566778899aabbccddeeff';

BAIL_OUT("no $MODULE: run make") if !-e $MODULE;

srand $seed;

my $pg = UrlStore::Trio->new;
my @nodes = map { UrlStore::Test->new(workers => 2, log => 'notice',
    globals => "load_module $MODULE;") } 0 .. 1;
my $router = UrlStore::Test->new;
my @proxies = map { [map { UrlStore::Proxy->new($_->port) } $pg->all] } @nodes;

for my $k (0 .. 1) {
    my $t = $nodes[$k];

    $t->allow_kills;
    $t->allow(qr/the log does not confirm/, qr/the master process is gone/);
    spew("$t->{dir}/conninfo", $pg->conninfo(
        ports => [map { $_->port } @{ $proxies[$k] }]) . "\n");
}

# histories differ in these: a standby that waits for the end of a lease, too

my @times = ('lease=1s takeover=2s', 'lease=3s takeover=1s');

sub configure
{
    my ($k, $times) = @_;

    $nodes[$k]->conf(<<"CONF");
urlstore_cluster c %%DIR%%/map.json;
urlstore_zone u 16m cluster=c shard=0 node=n$k $times
    replicate=postgres:\@%%DIR%%/conninfo;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location = /admin { urlstore_cluster_admin c; }
}
CONF
}

$router->conf("urlstore_cluster c %%DIR%%/map.json;\n"
    . join('', map { "upstream n$_ { server 127.0.0.1:" . $nodes[$_]->port
        . "; keepalive 8; }\n" } 0 .. 1) . <<'CONF');
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_route c; }
    location = /admin { urlstore_cluster_admin c; }
}
CONF

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

        $_->_control($how) for @p;
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

my (@kinds, %took, %sum, @client);
my $probe = 0;

while ($left > 0) {
    my $n = $left < $each ? $left : $each;
    my $why = history($seed, $n);

    is($why, '', "history $seed");
    last if $why;
    $left -= $n;
    $seed++;
}

for my $kind (sort keys %took) {
    my @s = sort { $a <=> $b } @{ $took{$kind} };

    diag(sprintf '%-8s %3d times, first accepted add after %.1f s (median), '
        . '%.1f s at most', $kind, scalar @s, $s[@s / 2], $s[-1]);
}

diag(join ', ', map { "$sum{$_} $_" } sort keys %sum);


# a new log, n failovers: '', or what was wrong

sub history
{
    my ($run, $n) = @_;

    srand $run;

    $_->kill_all for @nodes, $router;
    unlink map { ("$_->{dir}/map.json", "$_->{dir}/record") } @nodes, $router;
    $pg->primary->sql('TRUNCATE urlstore_shard, urlstore_log, urlstore_base');
    configure($_, $times[$run % @times]) for 0 .. 1;
    $_->start for @nodes, $router;

    my $history = UrlStore::History->new("$nodes[0]{dir}/record");
    my $record = $history->writer;

    @client = map { UrlStore::Client->new('127.0.0.1', $_->port, timeout => 1,
        no_retry => 1) } @nodes;

    maps() or return 'the map is not adopted';
    accepted(@nodes, $record);

    my $start = time;
    my @pids = map { client($run, $_, $history, $start) } 0 .. $CLIENTS;
    my $why = '';
    my @times;

    for my $i (1 .. $n) {
        if (!@kinds) {
            @kinds = sort { rand() <=> .5 } $ENV{US_FAULT} // keys %fault;
        }

        my $kind = shift @kinds;

        sleep 0.2 + rand;

        push @times, [clock_gettime(CLOCK_MONOTONIC), "failover $i, $kind"];

        my $s = eval { $fault{$kind}() };

        $why = "$kind: " . ($@ || 'no add is accepted any more'), last
            if !$s;

        push @{ $took{$kind} }, $s;
        diag(sprintf 'history %d, failover %d: %s, %.1f s', $run, $i, $kind,
            $s) if $each > 4;
    }

    sleep 0.2;
    kill 'TERM', @pids;
    waitpid $_, 0 for @pids;

    return $why if $why;

    $why = judge($history) or return '';

    my $at = $history->at // 0;
    my ($of) = grep { $_->[0] < $at } reverse @times;

    return $why . ($of ? ": $of->[1]" : '');
}


# the first map, to the primary and the router

sub maps
{
    my $s;

    wait_until(30, sub {
        for my $t (@nodes) {
            my $r = $t->client->request('GET', '/health') or next;

            next if $r->{status} != 200
                || ($r->json // {})->{status} ne 'ready';
            $s = $t->client->request('GET', '/stats')->json;
        }

        return $s;
    }) or return 0;

    my $text = JSON::PP->new->canonical->encode({ cluster => $cluster,
        version => 1, key => 'site', norm => $s->{normalization},
        shards => { 0 => { uuid => $s->{uuid} =~ tr/-//dr,
            nodes => ['n0', 'n1'] } }, slots => [['0-4095', 0]] });

    for my $t (@nodes, $router) {
        spew("$t->{dir}/map.new", $text);
        rename "$t->{dir}/map.new", "$t->{dir}/map.json";
    }

    return 1;
}


# the node whose term is the highest

sub holder
{
    my $name = $pg->primary->sql('SELECT holder FROM urlstore_shard');

    return $nodes[$name eq 'n1'];
}


sub other { return $nodes[$_[0] == $nodes[0]] }


# an add by one of these nodes: the seconds until it is accepted

sub accepted
{
    my (@of) = @_;

    my $start = time;
    my $record = UrlStore::History->new("$nodes[0]{dir}/record")->writer;

    return wait_until(15, sub {
        for my $k (grep { my $k = $_; grep { $_ == $nodes[$k] } @of } 0 .. 1) {
            my $r = $record->add($client[$k], 'http://probe.test/' . $probe++);

            return time - $start if $r && ($r->json // {})->{id};
        }
    });
}


sub url
{
    my ($n) = @_;

    return 'http://h' . $n % 300 . ".test/$n";
}


# A client, until it is ended: its pid.  Client 0 only looks up.  All find the
# same URLs at about the same time, at the node that answered last, and
# sometimes at any.

sub client
{
    my ($run, $n, $history, $start) = @_;

    my $pid = fork() // die "fork: $!";

    return $pid if $pid;

    srand $run * 100 + $n;

    my ($end, $at, $id, $parent) = (0, rand 3, 0, getppid);
    local $SIG{TERM} = sub { $end = 1 };
    my $record = $history->writer;
    my @to = map { UrlStore::Client->new('127.0.0.1', $_->port,
        timeout => $n % 2 ? 2 : 15, no_retry => 1) } @nodes, $router;

    while (!$end && getppid == $parent) {
        my $found = 1 + int((time - $start) * $RATE);
        my %batch = map { url(1 + int(rand() < .7 && $found > 100
            ? $found - rand 100 : rand $found)) => 1 }
            1 .. (rand() < .3 ? 1 : 1 + rand 20);

        $at = rand 3 if rand() < .2;

        my $what = $n == 0 ? 1 + int rand 3 : (0, 0, 1, 2, 3)[rand 5];
        my @ids = map { int rand $id + 20 } 1 .. 1 + rand 20;
        my $r = $what == 0 ? $record->add($to[$at], keys %batch)
            : $what == 1 ? $record->seen($to[$at], keys %batch)
            : $what == 2 ? $record->url($to[$at], $ids[0])
            : $record->urls($to[$at], @ids);

        if (!$r || $r->{status} >= 500) {
            $at = rand 3;
            sleep 0.01;

        } elsif ($what < 2 && $r->{body} =~ /^(\d+)\t/) {
            $id = $1 if $1 > $id;
        }

        sleep 0.004;
    }

    _exit(0);
}


# the record against what there is

sub judge
{
    my ($history) = @_;

    accepted(@nodes) or return 'in the end, nothing is added';

    my @urls = content(holder()) or return 'the primary has no URLs';
    my $why = $history->check(@urls);
    my $count = $history->count;

    $sum{$_} += $count->{$_} for keys %$count;
    $sum{URLs} += @urls;

    return $why if $why;

    my $standby = other(holder());

    same($standby, @urls) or return 'the standby has others';

    for my $t (@nodes) {
        $t->kill_all;
        $t->start;
    }

    for my $t (@nodes) {
        same($t, @urls)
            or return 'after a start from the log, a node has others';
    }

    return '';
}


# whether a node comes to have these; a standby answers only for what it has

sub same
{
    my ($t, @urls) = @_;

    return wait_until(20, sub {
        my @got = content($t, scalar @urls);
        return "@got" eq "@urls";
    });
}


# the URLs of a node, by id: all, or so many

sub content
{
    my ($t, $n) = @_;

    my $client = $t->client;
    my @urls;

    while (!defined $n || @urls < $n) {
        my $from = @urls;
        my $to = defined $n && $n < $from + 5000 ? $n - 1 : $from + 4999;
        my $r = $client->request('POST', '/url', join('', map { "$_\n" }
            $from .. $to), Accept => 'text/plain') // return;

        return if $r->{status} != 200;

        for (split /\n/, $r->{body}) {
            my ($id, $url) = split /\t/;
            return @urls if $url eq '-';
            push @urls, $url;
        }
    }

    return @urls;
}
