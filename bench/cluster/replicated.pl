#!/usr/bin/perl

# What a replicated log costs, and how long a failover takes, all on this
# machine.
#
#     make bench-cluster         [SECONDS=5] [ROUNDS=3]
#
# Adds: one shard on one worker over a pair of PostgreSQL servers with fsync,
# the standby synchronous; batches of 1,000 URLs by wrk, all new; a node with
# path= beside it.  Failover: from the kill of the primary nginx (takeover=2s,
# lease=2s), or of the primary of three PostgreSQL servers, to the first add
# that is accepted.  A standby of PostgreSQL is promoted at once, by the rule of
# t/lib/UrlStore/Trio.pm; what a supervisor needs to notice comes on top.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../../t/lib";

use File::Temp qw(tempdir);
use Time::HiRes qw(time);

use UrlStore::Nodes;
use UrlStore::Test;
use UrlStore::Trio;

my $seconds = $ENV{SECONDS} || 5;
my $rounds = $ENV{ROUNDS} || 3;
my $bodies = 600 * $seconds;         # 600,000 URLs a second, at most
my $dir = tempdir(CLEANUP => 1);

$| = 1;
$ENV{PATH} .= ':/usr/sbin';

die "no PostgreSQL: make deps\n" if !UrlStore::Postgres::bin();

lua();

my (%rate, %took);

adds() for 1 .. $rounds;
failovers();

print "\nbatches of 1,000 new URLs, 8 connections, 1 worker\n\n";
printf "%-34s %10s\n", '', 'k URLs/s';
printf "%-34s %10.1f\n", $_, median(@{ $rate{$_} }) / 1e3 for sort keys %rate;

print "\nfrom the kill to the first accepted add, s\n\n";
printf "%-34s %8s %8s\n", '', 'median', 'most';
printf "%-34s %8.2f %8.2f\n", $_, median(@{ $took{$_} }),
    (sort { $b <=> $a } @{ $took{$_} })[0] for sort keys %took;


sub adds
{
    my $main = UrlStore::Postgres->new(fsync => 'on',
        shared_buffers => '128MB')->start;
    my $standby = $main->standby('b')->start;

    $main->set(synchronous_standby_names => 'b');

    my $module = $UrlStore::Test::TOP
        . '/build/ngx_http_urlstore_postgres_module.so';
    my $conninfo = "$dir/conninfo";

    spew($conninfo, $main->conninfo . "\n");

    rate('replicated', "load_module $module;",
        "cluster=c shard=0 node=n0 replicate=postgres:\@$conninfo");
    rate('path=', '', 'path=%%DIR%%/u cluster=c shard=0 node=n0');

    $_->stop('fast') for $main, $standby;
}


sub rate
{
    my ($name, $globals, $zone) = @_;

    my $t = UrlStore::Test->new(workers => 1, log => 'warn', judge => 0,
        globals => $globals);

    $t->run(<<CONF);
keepalive_requests 1000000000;
client_max_body_size 8m;
client_body_buffer_size 1m;
urlstore_cluster c %%DIR%%/map.json;
urlstore_zone u 512m $zone;
server { listen 127.0.0.1:%%PORT%%; location / { urlstore_api u; } }
CONF

    UrlStore::Nodes::map_of($t) or die "$name: no primary";
    wait_until(20, sub { $t->post('/add', "http://a.test/\n",
        'Content-Type' => 'text/plain')->{body} =~ /\tnew\t/ })
        or die "$name: nothing is added";

    my $before = $t->get('/stats')->json->{next_id};
    my $out = `wrk -t1 -c8 -d${seconds}s -s $dir/new.lua \\
        http://127.0.0.1:@{[$t->port]} -- $bodies 2>&1`;
    my $new = $t->get('/stats')->json->{next_id} - $before;

    my ($requests) = $out =~ /(\d+) requests in/ or die $out;
    my ($each) = $out =~ m|Requests/sec:\s+([\d.]+)|;

    push @{ $rate{$name} }, $new / $requests * $each;
    die $out if $out =~ /Non-2xx/;
    die "$name: all $bodies bodies were sent: it is faster than that\n"
        if $new >= 1000 * $bodies;

    $t->stop;
}


sub failovers
{
    my $pg = UrlStore::Trio->new;
    my $n = UrlStore::Nodes->new($pg->conninfo, $pg->conninfo);

    $_->{judge} = 0 for $n->nodes, $n->router;
    $n->conf('lease=2s takeover=2s');

    my $why = $n->begin(sub { });

    die $why if $why;

    for (1 .. 2 * $rounds - 1) {
        my $name = $pg->primary->sql('SELECT holder FROM urlstore_shard');
        my $t = ($n->nodes)[$name eq 'n1'];
        my $start = time;

        $t->kill_all;
        $n->accepted($n->other($t)) or die 'nothing is added';
        push @{ $took{'kill -9 of nginx, takeover=2s'} }, time - $start;
        $t->start;
        wait_until(20, sub {
            ($t->get('/health')->json // {})->{status} eq 'standby' });

        $start = time;
        $pg->fail('kill');
        $pg->elect;
        $n->accepted($n->nodes) or die 'nothing is added';
        push @{ $took{'kill -9 of PostgreSQL, ANY 1 of 2'} }, time - $start;
        $pg->rejoin;
        $n->accepted($n->nodes);
    }
}


sub median
{
    my @s = sort { $a <=> $b } @_;

    return $s[$#s / 2];
}


# each body once; URLs of sites, with some path

sub lua
{
    spew("$dir/new.lua", <<'LUA');
local bodies, n = {}, 0

function init(args)
    local id = 0
    for i = 1, tonumber(args[1]) do
        local t = {}
        for k = 1, 1000 do
            id = id + 1
            t[k] = string.format("http://www.site%d.test/articles/%d/%x.html",
                id * 7919 % 30000, id % 97, id * 2654435761 % 4294967296)
        end
        bodies[i] = wrk.format("POST", "/add",
            { ["Content-Type"] = "text/plain" }, table.concat(t, "\n") .. "\n")
    end
end

function request()
    n = n + 1
    return bodies[(n - 1) % #bodies + 1]
end
LUA
}
