#!/usr/bin/perl

# What durability costs, beside Redis.
#
#     make bench-durability      [LINES=1000000] [ROUNDS=3] [RESTART=10000000]
#
#   1. POST /add of all-new URLs in batches of 1,000 over 8 connections to 2
#      workers: without path=, sync=off, sync=1s, sync=always; and the same
#      URLs to Redis (SADD of 1,000 members, 8 connections): no AOF, everysec,
#      always.  Each round runs every case once; the table shows medians.
#   2. a restart with RESTART URLs: from exec to the first answer of /seen
#
# URLs are those of bench/generate.  Requests are put together before the
# clock starts; "client" is the CPU of the load clients, apart.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../../t/lib";

use File::Temp qw(tempdir);
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
use Time::HiRes qw(sleep time);

use UrlStore::Client;
use UrlStore::Redis qw(cpu_of);
use UrlStore::Test;

my $lines = $ENV{LINES} || 1_000_000;
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

    my $t = UrlStore::Test->new(workers => 2, log => 'warn', judge => 0);

    $t->conf(<<"CONF");
urlstore_zone u $size $options;
keepalive_requests 1000000000;
client_max_body_size 8m;
client_body_buffer_size 1m;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF
    return $t;
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

    $cpu = cpu_of($t->worker_pids) - $cpu;

    my $stats = $t->get('/stats')->json;
    my $disk = -d "$t->{dir}/data"
        ? (split ' ', `du -sb $t->{dir}/data`)[0] : 0;

    $t->stop;

    die "$stats->{urls} URLs" if $stats->{urls} < 0.99 * $lines;

    return { seconds => $s, cpu => $cpu, client => $client,
        disk => $disk / $stats->{urls},
        log => $stats->{parts}{log} / $stats->{urls} };
}


sub redis_case
{
    my ($data, @options) = @_;

    my $dir = tempdir(CLEANUP => 1);
    my $redis = UrlStore::Redis->start($dir, @options) or return;
    my $cpu = cpu_of($redis->pid);

    my ($s, $client) = race($data, sub {
        my ($d) = @_;
        my @wires = map {
            my @urls = @$_;
            chomp @urls;
            UrlStore::Redis::wire('SADD', 'urls', @urls);
        } @$d;
        my $sock = IO::Socket::UNIX->new(Peer => "$dir/redis.sock");
        my $c = bless { sock => $sock, buf => '', sent => 0 },
            'UrlStore::Redis';

        return sub {
            for my $wire (@wires) {
                $c->send_wire($wire);
                $c->reply;
            }
        };
    });

    $cpu = cpu_of($redis->pid) - $cpu;
    $redis->stop;

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
    [ 'Redis, no AOF', sub { redis_case(@_) } ],
    [ 'Redis, AOF everysec', sub { redis_case(@_, '--appendonly', 'yes',
        '--appendfsync', 'everysec') } ],
    [ 'Redis, AOF always', sub { redis_case(@_, '--appendonly', 'yes',
        '--appendfsync', 'always') } ],
);

my %runs;

for my $round (1 .. $rounds) {
    my $data = batches($round);

    for my $case (@cases) {
        my $r = $case->[1]->($data) or next;
        push @{ $runs{$case->[0]} }, $r;
        printf STDERR "%d: %-24s %6.2f s\n", $round, $case->[0],
            $r->{seconds};
    }
}

printf "\n%d new URLs, batches of 1,000, %d connections, medians of %d\n\n",
    $lines, $connections, $rounds;
printf "%-24s %9s %12s %10s %10s\n", '', 'URLs/s', 'URLs/CPU s', 'client',
    'disk B/URL';

for my $case (@cases) {
    my $r = $runs{$case->[0]} or next;

    my %m = map {
        my $k = $_;
        my @v = sort { $a <=> $b } map { $_->{$k} // 0 } @$r;
        $k => $v[$#v / 2];
    } qw(seconds cpu client disk log);

    printf "%-24s %9.0f %12.0f %8.2f s %10s\n", $case->[0],
        $lines / $m{seconds}, $lines / ($m{cpu} || 0.01), $m{client},
        $m{disk} ? sprintf('%.1f', $m{disk}) : '';
}

exit if !$restart;

my $t = server('2g', 'path=%%DIR%%/data sync=off');
my $from = time;

system(generator($restart) . ' '
    . "| $top/build/urlstore import $t->{dir}/data 2>/dev/null") == 0
    or die 'import';

printf "\n%d URLs imported in %.0f s, %.1f bytes each on disk\n", $restart,
    time - $from, (split ' ', `du -sb $t->{dir}/data`)[0] / $restart;

for my $round (1 .. $rounds) {
    $from = time;
    $t->run;

    my $answers = wait_until(300, sub {
        my $a = $t->client->request('POST', '/seen', "http://example.com/\n");
        return $a && $a->{status} == 200;
    });

    printf "restart: %.2f s to the first answer, CPU %.2f s\n", time - $from,
        cpu_of($t->worker_pids);
    die if !$answers;
    $t->stop;
}
