#!/usr/bin/perl

# What the HTTP side costs and what it brings, beside Redis and Valkey.
#
#     make bench-http            [LINES=2300000] [SECONDS=5] [ROUNDS=3]
#
# A store of real URLs (reddit_submissions, completed by generated ones) in a
# private nginx; wrk for requests, worker CPU from /proc/PID/stat.  What is
# compared runs side by side: each round runs every case of a table once, the
# table shows medians.
#
#   1. single GET /seen of unknown and known URLs beside `return 200`
#   2. batches of 1,000: /seen known, /seen unknown, /add known, /add with
#      10 % new, by 1 and 2 workers; "known" are 100 batches again and again,
#      which the hot tables of the workers hold, "any known" more URLs at
#      random than a hot table of 16 MB has
#   3. the same members to those servers: SMISMEMBER, SADD
#   4. the time of a batch at half of the load that one worker bears
#
# Figures for each CPU second of the serving processes do not depend on what
# else the machine does; those for each second do.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../../t/lib";

use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(sleep time);

use UrlStore::Cpu;
use UrlStore::Peer;
use UrlStore::Test;

my $lines = $ENV{LINES} || 2_300_000;
my $seconds = $ENV{SECONDS} || 5;
my $rounds = $ENV{ROUNDS} || 3;
my $dir = tempdir(CLEANUP => 1);

$| = 1;
$ENV{PATH} .= ':/usr/sbin';

my $real = corpus('reddit_submissions');

splice @$real, $lines if @$real > $lines;
announce($lines - @$real, qw(reddit_submissions eot2024_A));

my $t = UrlStore::Test->new(workers => 2, log => 'warn', judge => 0)
    ->run(config());


sub config
{
    return <<'CONF';
urlstore_zone u 1g;
keepalive_requests 1000000000;
client_max_body_size 8m;
client_body_buffer_size 1m;
client_header_buffer_size 16k;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /200/ { return 200 '{"id":null,"status":"unseen"}'; }
}
CONF
}


# --- the store and the bodies -------------------------------------------

print "loading ... ";

my (@known, @unknown, %have);
my $start = time;
my $client = $t->client;

my $add = sub {
    my ($urls) = @_;

    my $r = $client->request('POST', '/add', join("\n", @$urls) . "\n",
        'Content-Type' => 'text/plain');

    die "add: $r->{status} $r->{body}" if $r->{status} != 200;

    # a sample for the bodies, by its canonical URLs

    if (rand() < 0.2 || @known < 1000) {
        push @known, grep { defined } map { /^\d+\t\w+\t(.*)/ ? $1 : undef }
            split /\n/, $r->{body};
    }
};

each_batch($real, $add);
each_batch(generated($lines - @$real), $add) if @$real < $lines;
$real = undef;

my $stats = $t->get('/stats')->json;

printf "%d URLs in %.1f s%s\n", $stats->{urls}, time - $start,
    defined $stats->{bytes_per_url}
    ? sprintf(', %.1f bytes each', $stats->{bytes_per_url}) : '';

each_batch(corpus('eot2024_A'), sub {
    my ($urls) = @_;

    my $r = $client->request('POST', '/seen', join("\n", @$urls) . "\n",
        'Content-Type' => 'text/plain');

    push @unknown, grep { defined } map { /^-\tunseen\t(.*)/ ? $1 : undef }
        split /\n/, $r->{body};
});

die 'LINES=N: ' . @known . ' known URLs and ' . @unknown . " unknown ones,"
    . " 1000 of each are needed\n" if @known < 1000 || @unknown < 1000;

shuffle(\@known);
shuffle(\@unknown);

my %bodies = (
    known => [ batches(\@known, 100) ],
    any => [ batches(\@known, 1000) ],
    unknown => [ batches(\@unknown, 100) ],
);

$bodies{new} = [ map { join "\n", (split /\n/, $_)[0 .. 899] }
    @{ $bodies{known} } ];

for my $kind (sort keys %bodies) {
    my $n = 0;

    spew("$dir/$kind." . $n++, $_) for @{ $bodies{$kind} };
}

spew("$dir/known.paths", paths('/seen', \@known));
spew("$dir/unknown.paths", paths('/seen', \@unknown));
spew("$dir/200.paths", paths('/200/', \@unknown));

lua();


# --- nginx --------------------------------------------------------------

my @single = qw(200 unknown known);
my @batch = (
    [ '/seen known', '/seen', 'known' ],
    [ '/seen any known', '/seen', 'any' ],
    [ '/seen unknown', '/seen', 'unknown' ],
    [ '/add known', '/add', 'known' ],
    [ '/add any known', '/add', 'any' ],
    [ '/add 10 % new', '/add', 'new' ],
);
my (%single, %batch);

# singles first: adds change the store

for my $workers (1, 2) {
    workers($workers);

    for (1 .. $rounds) {
        for my $case (@single) {
            push @{ $single{$workers}{$case} },
                wrk("$dir/single.lua", $case, $dir, "$dir/$case.paths");
        }
    }
}

for my $workers (1, 2) {
    workers($workers);

    for (1 .. $rounds) {
        for my $case (@batch) {
            my ($name, $path, $kind) = @$case;

            push @{ $batch{$workers}{$name} },
                wrk("$dir/batch.lua", $path, $dir, $kind);
        }
    }
}


print "\nsingle requests, keep-alive, 32 connections\n\n";
printf "%-22s %8s %10s %12s %10s\n", '', 'workers', 'req/s', 'CPU us/req',
    'of 200';

for my $workers (1, 2) {
    for my $case (@single) {
        my $all = $single{$workers}{$case};
        my $cpu = median(map { $_->{cpu} } @$all);
        my $base = median(map { $_->{cpu} } @{ $single{$workers}{200} });

        printf "%-22s %8d %10.0f %12.2f %9.2fx\n",
            $case eq '200' ? 'return 200' : "GET /seen $case", $workers,
            median(map { $_->{rate} } @$all), $cpu, $base / $cpu;
    }
}

print "\nbatches of 1,000, 8 connections;\n";
printf "known: %d batches, any known: %d\n\n", scalar @{ $bodies{known} },
    scalar @{ $bodies{any} };
printf "%-22s %8s %12s %20s" . ' %8s' x peers() . "\n", '', 'workers',
    'M URLs/s', 'M URLs/CPU second', map { $_->name } peers();

my %members = map { ($_->name => members($_)) } peers();

for my $workers (1, 2) {
    for my $case (@batch) {
        my ($name) = @$case;
        my $all = $batch{$workers}{$name};
        my $per_cpu = median(map { 1000 / $_->{cpu} } @$all);

        printf "%-22s %8d %12.2f %20.2f" . ' %8s' x peers() . "\n", $name,
            $workers, median(map { $_->{rate} * 1000 / 1e6 } @$all), $per_cpu,
            map { $_ ? sprintf('%.1fx', $per_cpu / $_->{per_cpu}) : '-' }
            map { $members{$_->name}{$name} } peers();
    }
}

for my $peer (map { $_->name } peers()) {
    for my $case (@batch) {
        my $r = $members{$peer}{ $case->[0] } or next;

        printf "%-28s %2s %12.2f %20.2f\n", "$peer $r->{command}", 1,
            $r->{rate}, $r->{per_cpu};
    }
}

print "\n", about_peers(), "\nThey answer no ids: SMISMEMBER beside /seen,"
    . " SADD beside /add,\n1,000 members a command, of the same canonical"
    . " URLs.\n";

half_load();


# --- pieces -------------------------------------------------------------


sub each_batch
{
    my ($urls, $code) = @_;

    for (my $from = 0; $from < @$urls; $from += 1000) {
        my $to = $from + 999 < $#$urls ? $from + 999 : $#$urls;

        $code->([ @$urls[$from .. $to] ]);
    }
}


sub shuffle
{
    my ($a) = @_;

    srand(1);

    for (my $i = $#$a; $i > 0; $i--) {
        my $k = int rand($i + 1);
        @$a[$i, $k] = @$a[$k, $i];
    }
}


sub batches
{
    my ($urls, $n) = @_;

    my $most = int(@$urls / 1000);

    $n = $most if $n > $most;

    return map { join "\n", @$urls[$_ * 1000 .. $_ * 1000 + 999] }
        0 .. $n - 1;
}


# a line for each of the first 20,000 URLs: the path of its request

sub paths
{
    my ($path, $urls) = @_;
    my $last = $#$urls < 19_999 ? $#$urls : 19_999;

    return join '', map { "$path?url=" . uri_escape($_) . "\n" }
        @$urls[0 .. $last];
}


sub median
{
    my @s = sort { $a <=> $b } @_;

    return $s[$#s / 2];
}


sub workers
{
    my ($n) = @_;

    my $conf = slurp($t->dir . '/nginx.conf');

    $conf =~ s/worker_processes \d+/worker_processes $n/;
    spew($t->dir . '/nginx.conf', $conf);
    $t->reload or die 'reload failed';
}


# one run of wrk: requests a second, and CPU microseconds of the workers a
# request

sub wrk
{
    my ($script, @args) = @_;

    my @pids = $t->worker_pids;
    my $conns = $script =~ /batch/ ? 8 : 32;
    my $before = cpu_of(@pids);

    my $out = `wrk -t1 -c$conns -d${seconds}s -s $script \\
        http://127.0.0.1:@{[$t->port]} -- @args 2>&1`;

    my $cpu = cpu_since($before, @pids);
    my ($n) = $out =~ /(\d+) requests in/ or die $out;
    my ($rate) = $out =~ m|Requests/sec:\s+([\d.]+)|;

    die $out if $out =~ /Non-2xx/;

    return { rate => $rate, cpu => $cpu / $n * 1e6 };
}


sub lua
{
    spew("$dir/single.lua", <<'LUA');
local requests, n = {}, 0

function init(args)
    for line in io.lines(args[3]) do
        requests[#requests + 1] = wrk.format("GET", line)
    end
end

function request()
    n = n % #requests + 1
    return requests[n]
end
LUA

    # "new": 900 known ones from the file, and 100 that nobody has sent

    spew("$dir/batch.lua", <<'LUA');
local requests, n, new, path = {}, 0, false, ""
local headers = { ["Content-Type"] = "text/plain" }
local run = os.time() % 100000 * 1000000

function init(args)
    path, new = args[1], args[3] == "new"

    local f = io.open(args[2] .. "/" .. args[3] .. ".0")

    while f do
        local body = f:read("*a")
        f:close()
        requests[#requests + 1] = new and body
            or wrk.format("POST", path, headers, body)
        f = io.open(args[2] .. "/" .. args[3] .. "." .. #requests)
    end
end

function request()
    n = n + 1

    local r = requests[n % #requests + 1]

    if not new then return r end

    local urls = { r }

    for i = 1, 100 do
        urls[#urls + 1] = "http://www.example" .. (n % 977) .. ".com/news/"
            .. run + n .. "/article-" .. i * 7919 .. ".html"
    end

    return wrk.format("POST", path, headers, table.concat(urls, "\n"))
end
LUA
}


# --- Redis and Valkey ---------------------------------------------------


sub members
{
    my ($peer) = @_;
    my $server = $peer->start($dir);

    # the same store: what nginx has

    for (my $from = 0; ; $from += 10_000) {
        my $r = $client->request('GET', "/urls?from=$from&limit=10000");
        my @urls = map { (split /\t/, $_, 2)[1] // () } split /\n/, $r->{body};

        last if !@urls;
        $server->pipeline(8, 'SADD', 'u', @urls);
    }

    $server->drain;

    my %out;

    for my $case ([ '/seen known', 'SMISMEMBER', 'known' ],
                  [ '/seen any known', 'SMISMEMBER', 'any' ],
                  [ '/seen unknown', 'SMISMEMBER', 'unknown' ],
                  [ '/add known', 'SADD', 'known' ],
                  [ '/add any known', 'SADD', 'any' ])
    {
        my ($name, $cmd, $kind) = @$case;
        my @wire = map { UrlStore::Peer::wire($cmd, 'u', split /\n/, $_) }
            @{ $bodies{$kind} };
        my (@rate, @per_cpu);

        for my $round (1 .. $rounds) {
            my ($n, $begin, $cpu) = (0, time, cpu_of($server->pid));

            # two in flight, so that it never waits for us

            $server->send_wire($wire[0]);

            while (time - $begin < $seconds / 2) {
                $server->send_wire($wire[++$n % @wire]);
                $server->reply;
            }

            $server->drain;
            push @rate, ($n + 1) / (time - $begin) * 1000 / 1e6;
            push @per_cpu, ($n + 1) / cpu_since($cpu, $server->pid) * 1000
                / 1e6;
        }

        $out{$name} = { command => "$cmd $kind", rate => median(@rate),
            per_cpu => median(@per_cpu) };
    }

    $server->stop;

    return \%out;
}


# --- latency ------------------------------------------------------------


# Batches at half of what one worker bears, sent by the clock over four
# connections, whether or not the answers before have come.

sub half_load
{
    workers(1);

    my $rate = median(map { $_->{rate} }
        @{ $batch{1}{'/add 10 % new'} }) / 2;
    my $n = int($rate * $seconds) || 1;
    my @socks = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $t->port) or die $! } 1 .. 4;
    my $sel = IO::Select->new(@socks);
    my (@times, %sent, %in);
    my ($begin, $next, $serial) = (time, 0, time % 100_000 * 1e6);

    while (@times < $n) {
        my $now = time - $begin;

        if ($next < $n && $now >= $next / $rate) {
            my $s = $socks[$next % @socks];
            my $body = $bodies{new}[$next % @{ $bodies{new} }] . "\n"
                . join("\n", map { "http://www.example@{[$next % 977]}.org/"
                . $serial++ . '/page.html' } 1 .. 100);

            push @{ $sent{$s} }, $next / $rate;
            syswrite $s, "POST /add HTTP/1.1\r\nHost: a\r\n"
                . "Content-Type: text/plain\r\nContent-Length: "
                . length($body) . "\r\n\r\n$body";
            $next++;
            next;
        }

        my $wait = $next < $n ? $next / $rate - $now : 1;

        for my $s ($sel->can_read($wait > 0 ? $wait : 0)) {
            $in{$s} //= '';
            sysread($s, $in{$s}, 262144, length $in{$s}) or die 'closed';

            while ($in{$s} =~ /\r\n\r\n/) {
                my $head = $+[0];
                my ($len) = $in{$s} =~ /Content-Length: (\d+)/i
                    or die 'no length';

                last if length $in{$s} < $head + $len;
                substr $in{$s}, 0, $head + $len, '';
                push @times, time - $begin - shift @{ $sent{$s} };
            }
        }
    }

    my @s = sort { $a <=> $b } @times;

    printf "\na batch of 1,000 with 10 %% new at half load (%.0f a second,"
        . " one worker), ms:\n  median %.2f, p90 %.2f, p99 %.2f, most %.2f\n",
        $rate, map { 1000 * $s[$#s * $_] } 0.5, 0.9, 0.99, 1;
}
