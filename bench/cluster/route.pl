#!/usr/bin/perl

# What a router costs: a router over three and over four shards beside a single
# node, all on this machine.
#
#     make bench-cluster         [LINES=200000] [SECONDS=5] [ROUNDS=3]
#
# The node and the router have two workers, a shard has one.  All have the same
# URLs.  Batches of 1,000 known URLs by wrk; worker CPU from /proc/PID/stat.
# What is compared runs side by side: each round runs every case once, the
# table shows medians.
#
# Figures for CPU do not depend on what else the machine does; those for each
# second do.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../../t/lib";

use File::Temp qw(tempdir);
use List::Util qw(sum);
use Time::HiRes qw(time);

use UrlStore::Cpu;
use UrlStore::Test;

my $lines = $ENV{LINES} || 200_000;
my $seconds = $ENV{SECONDS} || 5;
my $rounds = $ENV{ROUNDS} || 3;
my @sizes = (3, 4);
my $dir = tempdir(CLEANUP => 1);

$| = 1;
$ENV{PATH} .= ':/usr/sbin';

my $urls = corpus('reddit_submissions');

splice @$urls, $lines if @$urls > $lines;
announce($lines - @$urls, 'reddit_submissions');
push @$urls, @{ generated($lines - @$urls) } if @$urls < $lines;

my $common = <<'CONF';
keepalive_requests 1000000000;
client_max_body_size 8m;
client_body_buffer_size 1m;
client_header_buffer_size 16k;
CONF

my $node = start(2, <<CONF);
urlstore_zone u 256m path=%%DIR%%/store;
server { listen 127.0.0.1:%%PORT%%; location / { urlstore_api u; } }
CONF

my (%router, %shards);

cluster($_) for @sizes;

my @known = load();
my @cases = map { my $path = $_; (
    [ "node $path", $path, $node, [] ],
    map { [ "router, $_ shards $path", $path, $router{$_}, $shards{$_} ] }
        @sizes,
) } '/seen', '/add';

spew("$dir/body.$_", join("\n", @known[$_ * 1000 .. $_ * 1000 + 999]) . "\n")
    for 0 .. 49;
lua();

my %runs;

for (1 .. $rounds) {
    push @{ $runs{$_->[0]} }, wrk(@$_) for @cases;
}

printf "\nbatches of 1,000 known URLs, 8 connections\n\n";
printf "%-26s %9s %15s %15s %9s %9s\n", '', 'M links/s', 'router us/link',
    'all us/link', 'links/s', 'CPU';

for my $case (@cases) {
    my ($name, $path) = @$case;
    my ($own, $all, $rate) = map { median($name, $_) } qw(own all rate);

    printf "%-26s %9.2f %15s %15.2f %8.2fx %8.2fx\n", $name, $rate / 1e6,
        $name =~ /^node/ ? '-' : sprintf('%.2f', $own), $all,
        $rate / median("node $path", 'rate'),
        median("node $path", 'all') / $all;
}

print "\nlinks/s and CPU: beside the node; CPU is that of all workers.\n";


sub start
{
    my ($workers, $conf) = @_;

    my $t = UrlStore::Test->new(workers => $workers, log => 'warn',
        judge => 0);

    return $t->run($common . $conf);
}


# a router over n shards of its own

sub cluster
{
    my ($n) = @_;

    my $map = "$dir/map.$n";
    my @up = map { start(1, <<CONF) } 0 .. $n - 1;
urlstore_cluster crawl $map;
urlstore_zone u 256m path=%%DIR%%/store cluster=crawl shard=$_ node=us_$_;
server { listen 127.0.0.1:%%PORT%%; location / { urlstore_api u; } }
CONF

    $_->ready or die 'a shard does not start' for @up;

    my $stats = $up[0]->get('/stats')->json;
    my @uuid = map { $_->get('/stats')->json->{uuid} } @up;

    spew("$map.new", JSON::PP->new->canonical->encode({
        cluster => 'c' x 32, version => 1, key => 'site',
        norm => $stats->{normalization},
        shards => { map { $_ => { uuid => $uuid[$_], nodes => ["us_$_"] } }
            0 .. $n - 1 },
        slots => [map { [int(4096 * $_ / $n) . '-'
            . (int(4096 * ($_ + 1) / $n) - 1), $_] } 0 .. $n - 1],
    }));
    chmod 0755, $dir;
    chmod 0644, "$map.new";
    rename "$map.new", $map;

    $router{$n} = start(2, "urlstore_cluster crawl $map;"
        . join('', map { "upstream us_$_ { server 127.0.0.1:"
            . $up[$_]->port . '; keepalive 32; }' } 0 .. $n - 1)
        . 'server { listen 127.0.0.1:%%PORT%%; '
        . 'location / { urlstore_route crawl; } }');
    $shards{$n} = \@up;

    wait_until(30, sub {
        $router{$n}->post('/add', join '', map { "http://h$_.com/\n" }
            0 .. 99)->{body} !~ /unavailable|"status":503/;
    }) or die "the shards have no map";
}


# the URLs, everywhere; returns the canonical ones, in random order

sub load
{
    my %all;

    for (my $i = 0; $i < @$urls; $i += 1000) {
        my $to = $i + 999 < $#$urls ? $i + 999 : $#$urls;
        my $body = join '', map { "$_\n" } @$urls[$i .. $to];

        for my $t ($node, map { $router{$_} } @sizes) {
            my $r = $t->post('/add', $body, 'Content-Type' => 'text/plain');

            die "add: $r->{status} $r->{body}" if $r->{status} != 200
                || $r->{body} =~ /\tunavailable\t/;

            $all{$_} = 1 for $r->{body} =~ /^\d+\t\w+\t(.*)$/mg;
        }
    }

    my @all = sort keys %all;

    srand(1);

    for (my $i = $#all; $i > 0; $i--) {
        my $k = int rand($i + 1);
        @all[$i, $k] = @all[$k, $i];
    }

    die "LINES=$lines: 50,000 URLs are needed\n" if @all < 50_000;

    return @all;
}


sub lua
{
    spew("$dir/batch.lua", <<'LUA');
local bodies, n = {}, 0

function init(args)
    for i = 0, 49 do
        local f = assert(io.open(args[2] .. "/body." .. i, "rb"))
        bodies[i] = wrk.format("POST", args[1],
            { ["Content-Type"] = "text/plain" }, f:read("*a"))
        f:close()
    end
end

function request()
    n = n + 1
    return bodies[n % 50]
end
LUA
}


sub wrk
{
    my ($name, $path, $t, $up) = @_;

    my @own = $t->worker_pids;
    my @up = map { $_->worker_pids } @$up;
    my ($own, $all) = (cpu_of(@own), cpu_of(@own, @up));

    my $out = `wrk -t1 -c8 -d${seconds}s -s $dir/batch.lua \\
        http://127.0.0.1:@{[$t->port]} -- $path $dir 2>&1`;

    my ($n) = $out =~ /(\d+) requests in/ or die $out;
    my ($rate) = $out =~ m|Requests/sec:\s+([\d.]+)|;

    die $out if $out =~ /Non-2xx/;

    return { rate => $rate * 1000, own => cpu_since($own, @own) / $n * 1e3,
        all => cpu_since($all, @own, @up) / $n * 1e3 };
}


sub median
{
    my ($name, $what) = @_;

    my @s = sort { $a <=> $b } map { $_->{$what} } @{ $runs{$name} };

    return $s[$#s / 2];
}
