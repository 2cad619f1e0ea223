#!/usr/bin/perl

# What durability costs, beside Redis and Valkey.
#
#     make bench-durability      [LINES=1000000] [ROUNDS=3] [RESTART=10000000]
#
#   LINES=0: the second part alone; RESTART=0: the first.
#
#   1. POST /add of all-new URLs in batches of 1,000 over 8 connections to 2
#      workers: without path=, sync=off, sync=1s, sync=always; and the same
#      URLs to those servers (SADD of 1,000 members, 8 connections): no AOF,
#      everysec, always.  Each round runs every case once; the table shows
#      medians.
#   2. a restart with about RESTART URLs, from exec to the first answer of
#      /seen: from a snapshot alone, and just before the next one is due, after
#      a kill and after a clean stop; medians of ROUNDS.  Then URLs are added
#      until the next snapshot is complete: how long the journal gets meanwhile.
#      Then URLs are deleted, at random, until the one after that is due
#
# URLs are those of bench/generate.  Requests are put together before the
# clock starts; "client" is the CPU of the load clients, apart.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../../t/lib";

use File::Temp qw(tempdir);
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw(sleep time);

use UrlStore::Client;
use UrlStore::Cpu;
use UrlStore::Peer;
use UrlStore::Test;

my $lines = $ENV{LINES} // 1_000_000;
my $rounds = $ENV{ROUNDS} || 3;
my $restart = $ENV{RESTART} // 10_000_000;
my $top = $UrlStore::Test::TOP;
my $connections = 8;

$| = 1;
$ENV{PATH} .= ':/usr/sbin';


announce("$lines and $restart");


sub server
{
    my ($size, $options) = @_;

    return UrlStore::Test->new(workers => 2, log => 'warn', judge => 0)
        ->conf(zone_conf("$size $options", 'keepalive_requests 1000000000',
            'client_max_body_size 8m', 'client_body_buffer_size 1m'));
}


# the URLs, in batches of 1,000; one array for each connection

sub batches
{
    my ($seed) = @_;

    open my $fh, '-|', generator($lines, $seed) or die "generate: $!";

    my (@part, @batch, $n);

    while (my $line = <$fh>) {
        push @batch, $line;

        if (@batch == 1000) {
            push @{ $part[$n++ % $connections] }, [ @batch ];
            @batch = ();
        }
    }

    return \@part;
}


# Runs code->(connection's data) in a process for each connection, all at once:
# seconds, and CPU seconds of these processes.

sub race
{
    my ($data, $code) = @_;

    pipe my $go, my $start;
    pipe my $done, my $end;
    my @pids;

    for my $d (@$data) {
        my $pid = fork() // die "fork: $!";

        if ($pid == 0) {
            close $start;
            my $run = $code->($d);
            sysread $go, my $buf, 1;
            my ($user, $system) = (POSIX::times())[1, 2];
            $run->();
            my @after = (POSIX::times())[1, 2];
            syswrite $end, ($after[0] + $after[1] - $user - $system) . "\n";
            POSIX::_exit(0);
        }

        push @pids, $pid;
    }

    sleep 0.5;
    close $end;
    my $from = time;
    close $start;

    waitpid $_, 0 for @pids;
    my $seconds = time - $from;

    my $cpu = 0;
    $cpu += $_ for <$done>;

    return ($seconds, $cpu / POSIX::sysconf(POSIX::_SC_CLK_TCK()));
}


sub nginx_case
{
    my ($options, $data) = @_;

    my $t = server('1g', $options);
    $t->run;
    $t->ready(within => 120) or die 'not ready';

    my $port = $t->port;

    my $cpu = cpu_of($t->worker_pids);

    my ($s, $client) = race($data, sub {
        my ($d) = @_;
        my @bodies = map { join '', @$_ } @$d;
        my $c = UrlStore::Client->new('127.0.0.1', $port);
        $c->request('GET', '/health');

        return sub {
            for my $body (@bodies) {
                my $a = $c->request('POST', '/add?brief=1', $body);
                die if $a->{status} != 200;
            }
        };
    });

    $cpu = cpu_since($cpu, $t->worker_pids);

    my $stats = $t->get('/stats')->json;
    my $disk = -d "$t->{dir}/data"
        ? (split ' ', `du -sb $t->{dir}/data`)[0] : 0;

    $t->stop;

    die "$stats->{urls} URLs" if $stats->{urls} < 0.99 * $lines;

    return { seconds => $s, cpu => $cpu, client => $client,
        disk => $disk / $stats->{urls},
        log => $stats->{parts}{log} / $stats->{urls} };
}


sub peer_case
{
    my ($peer, $data, @options) = @_;

    my $dir = tempdir(CLEANUP => 1);
    my $server = $peer->start($dir, @options);
    my $cpu = cpu_of($server->pid);

    my ($s, $client) = race($data, sub {
        my ($d) = @_;
        my @wires = map {
            my @urls = @$_;
            chomp @urls;
            UrlStore::Peer::wire('SADD', 'urls', @urls);
        } @$d;

        $server->connect or die $peer->name . ": $!";

        return sub {
            for my $wire (@wires) {
                $server->send_wire($wire);
                $server->reply;
            }
        };
    });

    $cpu = cpu_since($cpu, $server->pid);
    $server->stop;

    return { seconds => $s, cpu => $cpu, client => $client };
}


my @cases = (
    [ 'urlstore, memory only', sub { nginx_case('', @_) } ],
    [ 'urlstore, sync=off', sub { nginx_case('path=%%DIR%%/data sync=off',
        @_) } ],
    [ 'urlstore, sync=1s', sub { nginx_case('path=%%DIR%%/data sync=1s',
        @_) } ],
    [ 'urlstore, sync=always',
        sub { nginx_case('path=%%DIR%%/data sync=always', @_) } ],
);

for my $peer (peers()) {
    my $name = $peer->name;

    push @cases, [ "$name, no AOF", sub { peer_case($peer, @_) } ],
        map { my $when = $_; [ "$name, AOF $when", sub { peer_case($peer, @_,
            '--appendonly', 'yes', '--appendfsync', $when) } ] }
        qw(everysec always);
}

my %runs;

@cases = () if !$lines;

for my $round (1 .. (@cases ? $rounds : 0)) {
    my $data = batches($round);

    for my $case (@cases) {
        my $r = $case->[1]->($data);
        push @{ $runs{$case->[0]} }, $r;
        printf STDERR "%d: %-24s %6.2f s\n", $round, $case->[0],
            $r->{seconds};
    }
}

if (@cases) {
    printf "\n%s\n\n%d new URLs, batches of 1,000, %d connections, medians of"
        . " %d\n\n", about_peers(), $lines, $connections, $rounds;
    printf "%-24s %9s %12s %10s %10s\n", '', 'URLs/s', 'URLs/CPU s', 'client',
        'disk B/URL';
}

for my $case (@cases) {
    my $r = $runs{$case->[0]};

    my %m = map {
        my $k = $_;
        my @v = sort { $a <=> $b } map { $_->{$k} // 0 } @$r;
        $k => $v[$#v / 2];
    } qw(seconds cpu client disk log);

    printf "%-24s %9.0f %12.0f %8.2f s %10s\n", $case->[0],
        $lines / $m{seconds}, $lines / $m{cpu}, $m{client},
        $m{disk} ? sprintf('%.1f', $m{disk}) : '';
}

exit if !$restart;

# The restart.  Options are the default ones, so the longest replay is that of
# the journal just before a snapshot is due.

use constant LEAST => 12 * 1024 * 1024;       # snapshot=
use constant SHARE => 12;                     # src/life/us_job.h
use constant DELETE => 20;

my $t = server('2g', 'path=%%DIR%%/data');
my $data = "$t->{dir}/data";
my $urls = generator($restart);
my $part = int($restart * 0.9);
my $from = time;

open my $fh, '-|', $urls or die "generate: $!";
open my $import, '|-', "$top/build/urlstore import $data >/dev/null 2>&1"
    or die "import: $!";

for (1 .. $part) {
    print $import scalar <$fh>;
}

close $import or die 'import';

my ($size) = map { -s } glob "$data/snapshot.*";

die "RESTART=$restart: so few URLs make no snapshot; 100000 do\n" if !$size;

my $due = due($size);

printf "\n%d URLs imported in %.0f s, a snapshot of %.1f bytes each\n", $part,
    time - $from, $size / $part;

# files that root has imported are the workers' from then on

$t->run;
$t->ready(within => 120) or die 'not ready';
$t->stop;

printf "%-40s %9s %9s\n", 'restart', 'answers', 'CPU';

restarts('a snapshot alone, stopped', sub { $t->stop });

$t->start;
$t->ready(within => 120) or die 'not ready';

my $c = $t->client;
my $replay = 0;

while ($replay < 0.99 * $due && !eof $fh) {
    my $body = join '', map { scalar(<$fh>) // () } 1 .. 5000;

    die if $c->request('POST', '/add?brief=1', $body)->{status} != 200;
    $replay = $t->get('/stats')->json->{replay_bytes};
}

my $stats = $t->get('/stats')->json;

printf "%d URLs, %.1f MB of journal past the snapshot; one is due at %.1f MB\n",
    $stats->{urls}, $stats->{replay_bytes} / 2**20, $due / 2**20;

$t->kill_all;

restarts('just before a snapshot, killed', sub { $t->kill_all });
restarts('just before a snapshot, stopped', sub { $t->stop });

# The worst of all is a kill just before that snapshot is complete.

$t->start;
$t->ready(within => 120) or die 'not ready';

$c = $t->client;
my ($most, $added) = (0, 0);

open my $more, '-|', generator($restart, 2) or die "generate: $!";

while (!eof $more) {
    my $body = join '', map { scalar(<$more>) // () } 1 .. 1000;

    die if $c->request('POST', '/add?brief=1', $body)->{status} != 200;
    $replay = $t->get('/stats')->json->{replay_bytes};
    last if $replay < $most;

    $most = $replay;
    $added += 1000;
}

printf "%.1f MB when the next snapshot is complete, %d URLs later\n",
    $most / 2**20, $added;

# a journal of deletes

my ($deleted, $urls_now) = (0, $t->get('/stats')->json->{urls});

$due = due(map { -s } glob "$data/snapshot.*");
$replay = 0;

while ($replay + DELETE * $deleted < 0.97 * $due
    && $deleted < $urls_now / 2)
{
    remove($t->port, map { int rand $urls_now } 1 .. 1000) for 1 .. 20;
    $deleted += 20_000;
    $replay = $t->get('/stats')->json->{replay_bytes};
}

die 'the snapshot came before it was due' if $replay < 2 * $deleted;

printf "%.1f MB of journal past the snapshot, most of it some %d deletes\n",
    $replay / 2**20, $deleted;

$t->kill_all;

restarts('deletes, killed', sub { $t->kill_all });

$t->start;
$t->ready(within => 120) or die 'not ready';
$t->stop;


# a snapshot is due after so much journal

sub due
{
    my ($size) = @_;

    return $size / SHARE > LEAST ? $size / SHARE : LEAST;
}


# deletes ids; so many requests at once fit into the server's first buffer

sub remove
{
    my ($port, @ids) = @_;

    my $sock = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port")
        or die "connect: $!";

    while (my @some = splice @ids, 0, 20) {
        my ($answers, $rest) = (0, '');

        print $sock join '',
            map { "DELETE /url/$_ HTTP/1.1\r\nHost: a\r\n\r\n" } @some;

        while ($answers < @some) {
            sysread $sock, $rest, 65536, length $rest or die 'a delete fails';
            $answers = () = $rest =~ m{HTTP/1\.1 \d}g;
        }
    }
}


# starts the service, which ended by $end, several times

sub restarts
{
    my ($what, $end) = @_;

    my (@seconds, @cpu);

    for (1 .. $rounds) {
        my $begin = time;

        $t->start;
        wait_until(300, sub {
            my $a = $t->client->request('POST', '/seen',
                "http://example.com/\n");
            return $a && $a->{status} == 200;
        }) or die "no answer: $what";

        push @seconds, time - $begin;
        push @cpu, cpu_of($t->worker_pids);
        $end->();
    }

    printf "%-40s %7.2f s %7.2f s\n", $what,
        map { (sort { $a <=> $b } @$_)[$#$_ / 2] } \@seconds, \@cpu;
}
