#!/usr/bin/perl

# Growth of a cluster under load: 1 -> 2 -> 4 shards -> slots back, while every
# participant is killed.  For each map, the shards get it in any order; before
# and after each of them, any shard may be killed (SIGKILL, all its processes)
# and started again, or one of its workers.  The operator may end before all
# shards have the map: these get the next one.  Clients split their batches by
# the maps that they have, which may be old or newer than a shard's.
#
# The record of all answers is checked: no URL has two ids, none is new twice,
# no id is lost, and no URL is denied after the reply to an add of it; at the
# end, every URL can be added.  One URL of 20 may be erased meanwhile, through
# the router: after the reply it is not there, and does not come back.
#
#     US_GROWTH=500 prove t/cluster_growth.t      so many histories (1)
#     US_SEED=7                                   the first one's seed
#
# Kinds of requests, see UrlStore::Splitter: by clients that ask former owners;
# by those that know nothing of them and send no header; and through a router,
# which gets the maps as the shards do, and is killed as they are.

use strict;
use warnings;

use lib 't/lib';
use POSIX qw(_exit);
use Time::HiRes qw(sleep time);

use UrlStore::Splitter;
use UrlStore::Test;

my $SHARDS = 4;
my $CLIENTS = 3;
my $RATE = 700;                      # URLs that are found in a second

my $runs = $ENV{US_GROWTH} // 1;
my $seed = $ENV{US_SEED} // 1;
my $cluster = '00112233445566778899aabbccddeeff';

my @nodes = map { UrlStore::Test->new(workers => 2) } 1 .. $SHARDS;

for my $n (0 .. $SHARDS - 1) {
    $nodes[$n]->allow_kills;
    $nodes[$n]->allow(qr/the master process is gone/);
    $nodes[$n]->conf(<<"CONF");
urlstore_cluster c %%DIR%%/map.json;
urlstore_zone u 4m path=%%DIR%%/u cluster=c shard=$n node=n$n;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location = /admin { urlstore_cluster_admin c; }
}
CONF
}

my @ports = map { $_->port } @nodes;
my $upstreams = join '', map {
    "upstream n$_ { server 127.0.0.1:$ports[$_]; keepalive 8; }\n"
} 0 .. $SHARDS - 1;

my $router = UrlStore::Test->new(workers => 2);

$router->allow_kills;
$router->allow(qr/the master process is gone/);
$router->conf(<<"CONF");
urlstore_cluster c %%DIR%%/map.json;
$upstreams
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_route c; }
    location = /admin { urlstore_cluster_admin c; }
}
CONF

my @all = (@nodes, $router);
my %sum;

for my $run ($seed .. $seed + $runs - 1) {
    srand $run;

    my $why = history($run);

    if ($why || $runs == 1) {
        is($why, '', "history $run");
    }

    last if $why;
}

ok(1, "$runs histories: " . join ', ', map { "$sum{$_} $_" } sort keys %sum);


# '', or what was wrong

sub history
{
    my ($run) = @_;

    for my $t (@all) {
        $t->kill_all;
        system('rm', '-rf', map { "$t->{dir}/$_" } qw(u record map.json));
        $t->start;
    }

    for my $t (@nodes) {
        $t->ready or return 'a shard does not start';
    }

    my %uuid = map {
        my $s = json($nodes[$_]->client->request('GET', '/stats')->{body});
        $_ => [$s->{uuid} =~ tr/-//dr, $s->{normalization}]
    } 0 .. $SHARDS - 1;

    # the slots: [owner, former owners]

    my @slots = map { [0] } 0 .. 4095;
    my $version = 1;

    my $give = sub {
        my ($to, $from, $every, $of) = @_;

        for my $s (grep { ($_ >> 5) % $of == $every && $slots[$_][0] == $from }
            0 .. 4095)
        {
            $slots[$s] = [$to, grep { $_ != $to } @{ $slots[$s] }];
        }
    };

    post(map_text($version, \@slots, \%uuid, 1), [0, $SHARDS], 0)
        or return 'the first map is refused';

    my $record = "$nodes[0]{dir}/record";
    my $start = time;
    my @pids = map { client($run, $_, $record, $start) } 1 .. $CLIENTS;

    my @steps = (
        [2, sub { $give->(1, 0, 1, 2) }],
        [4, sub { $give->(2, 0, 0, 4); $give->(3, 1, 1, 4) }],
        [4, sub { $give->(0, 2, 0, 8); $give->(1, 3, 1, 8);
            $give->(0, 1, 3, 4) }],
        [4, sub { $give->(3, 0, 0, 8); $give->(2, 1, 1, 8) }],
    );

    my $why = '';

    for my $i (0 .. $#steps) {
        my ($shards, $change) = @{ $steps[$i] };
        my @to = sort { rand() <=> .5 } 0 .. $shards - 1, $SHARDS;

        sleep(.1 + rand .3);
        $change->();

        splice @to, rand @to if $i < $#steps && rand() < .2;

        post(map_text(++$version, \@slots, \%uuid, $shards), \@to, 1)
            or $why = "map $version was not adopted", last;
        $sum{maps}++;
    }

    sleep .2;
    kill 'TERM', @pids;
    waitpid $_, 0 for @pids;

    return $why || check($record,
        map { url($_) } 1 .. (time - $start) * $RATE);
}


# the map to all of these shards and the router, until each has it

sub post
{
    my ($text, $to, $kills) = @_;

    for my $n (@$to) {
        stumble() if $kills && rand() < .4;
        sleep rand .2 if $kills;

        my $done = wait_until(20, sub {
            my $r = $all[$n]->client->request('POST', '/admin', $text);

            return -1 if $r && $r->{status} == 409;
            return $r && $r->{status} == 204;
        });

        return 0 if $done != 1;

        stumble() if $kills && rand() < .4;
    }

    return 1;
}


# a worker is killed; or a shard is, and after a while started again

sub stumble
{
    my $t = $all[rand @all];

    if (rand() < .3) {
        $sum{workers}++ if $t->kill_worker;
        return;
    }

    $t->kill_all;
    $sum{kills}++;
    sleep rand .15;
    $t->start;
}


sub map_text
{
    my ($version, $slots, $uuid, $shards) = @_;

    my (@ranges, $from);

    for my $s (0 .. 4095) {
        $from //= $s;

        if ($s == 4095 || "@{ $slots->[$s] }" ne "@{ $slots->[$s + 1] }") {
            push @ranges, ["$from-$s", map { 0 + $_ } @{ $slots->[$s] }];
            undef $from;
        }
    }

    return JSON::PP->new->canonical->encode({
        cluster => $cluster, version => $version, key => 'site',
        norm => $uuid->{0}[1], slots => \@ranges,
        shards => { map { $_ => { uuid => $uuid->{$_}[0], nodes => ["n$_"] } }
            0 .. $shards - 1 } });
}


# may be erased

sub erasable
{
    my ($url) = @_;

    return $url =~ m{/(\d+)$} && $1 % 20 == 7;
}


sub url
{
    my ($n) = @_;

    return 'http://h' . $n % 300 . ".test/$n";
}


# A client, until it is ended: its pid.  All clients find the same URLs at about
# the same time.  It writes for each answer when it asked and when it had the
# answer, the URL, the status and the id.

sub client
{
    my ($run, $n, $record, $start) = @_;

    my $pid = fork() // die "fork: $!";

    return $pid if $pid;

    srand $run * 100 + $n;

    my $end = 0;
    local $SIG{TERM} = sub { $end = 1 };
    my $split = UrlStore::Splitter->new(@ports);

    $split->router($router->port);

    open my $out, '>>', $record or _exit(1);

    while (!$end) {
        my $began = time;
        my $found = 1 + int(($began - $start) * $RATE);
        my %batch = map { url(1 + int(rand() < .6 && $found > 100
            ? $found - rand 100 : rand $found)) => 1 } 1 .. 1 + rand 20;
        my @batch = keys %batch;

        $split->refresh if rand() < .1 || !$split->{map};

        my $how = ('ask', 'ask', 'naive', 'route', 'route')[rand 5];
        my @answers = $split->$how(rand() < .7, @batch);
        my $ended = time;

        syswrite $out, join '', map { sprintf "%.6f %.6f %s %s %s %s\n",
            $began, $ended, $how, $batch[$_], @{ $answers[$_] } } 0 .. $#batch;

        my @erased = grep { erasable($_) && rand() < .5 } @batch or next;

        $began = time;
        @answers = $split->erase(@erased);
        $ended = time;

        syswrite $out, join '', map { sprintf "%.6f %.6f erase %s %s %s\n",
            $began, $ended, $erased[$_], @{ $answers[$_] } } 0 .. $#erased;
    }

    close $out;
    _exit(0);
}


# the record, and the cluster as it is now

sub check
{
    my ($record, @urls) = @_;

    my (%id, %new, %acked, %denied, %there, %erased);

    open my $in, '<', $record or return "no record: $!";

    while (<$in>) {
        my ($began, $ended, $how, $url, $status, $id) = split;

        $sum{"$status by $how"}++;

        return "$url is refused" if $status eq 'refused' && !erasable($url);

        if ($how eq 'erase') {
            $erased{$url} = $ended if $status eq 'erased'
                && (!defined $erased{$url} || $ended < $erased{$url});
            next;
        }

        if ($status eq 'new' || $status eq 'seen') {
            $there{$url} = $began
                if !defined $there{$url} || $began > $there{$url};
            return "$url has the ids $id{$url} and $id"
                if ($id{$url} //= $id) != $id;
            return "$url is new twice" if $status eq 'new' && $new{$url}++;

            $acked{$url} = $ended
                if !defined $acked{$url} || $ended < $acked{$url};
        }

        if ($status eq 'new' || $status eq 'unseen') {
            $denied{$url} = $began
                if !defined $denied{$url} || $began > $denied{$url};
        }
    }

    for my $url (keys %acked) {
        return "$url is denied after an answer" if defined $denied{$url}
            && $denied{$url} > $acked{$url} && !erasable($url);
    }

    for my $url (keys %erased) {
        return "$url is there after it was erased" if defined $there{$url}
            && $there{$url} > $erased{$url};
    }

    # at the end, all are added, and all ids are there

    for my $t (@nodes) {
        $t->ready or return 'a shard is not ready';
    }

    my $split = UrlStore::Splitter->new(@ports);
    my @left = @urls;

    my $all = wait_until(20, sub {
        my @try = splice @left, 0, scalar @left;

        $split->refresh;

        while (my @some = splice @try, 0, 100) {
            my @answers = $split->ask(1, @some);

            for my $i (0 .. $#some) {
                my ($status, $id) = @{ $answers[$i] };
                my $url = $some[$i];

                next if $status eq 'refused' && erasable($url);
                return -2 if $status ne 'unavailable' && $erased{$url};

                if ($id eq '-') {
                    push @left, $url;
                    next;
                }

                return -1 if ($id{$url} //= $id) != $id
                    || ($status eq 'new' && $acked{$url});
            }
        }

        return !@left;
    });

    return 'at the end, an id is another one' if $all == -1;
    return 'at the end, a URL that was erased is there' if $all == -2;
    return @left . " URLs cannot be added, $left[0]" if !$all;

    for my $url (grep { !erasable($_) } @urls) {
        my $r = $nodes[$id{$url} >> 40]->get('/url/' . $id{$url});

        return "the id $id{$url} is lost" if $r->{body} ne "$url\n";
    }

    return '';
}
