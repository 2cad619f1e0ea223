#!/usr/bin/perl

# Two nodes of replicated shards, as operators command and see them: promotion
# by command, maps, figures.

use strict;
use warnings;

use lib 't/lib';

use File::Temp qw(tempdir);

use UrlStore::Postgres;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL is installed: make deps')
    if !UrlStore::Postgres::bin();

my $top = $UrlStore::Test::TOP;
my $pg = UrlStore::Postgres->new->start;
my $conninfo = $pg->conninfo;
my $dir = tempdir(CLEANUP => 1);
my %conf;


# a node: zones u0, u1 ... of shards 0, 1 ..., and m, which is not replicated

sub node
{
    my ($name, $shards, $options, @faults) = @_;

    my $t = UrlStore::Test->new(@faults, globals =>
        "load_module $UrlStore::Test::POSTGRES;");

    # a node that is stopped lets a call of its thread end

    $t->allow(qr/the log does not confirm/);
    spew($t->dir . '/log', $conninfo);

    $conf{$t} = "urlstore_cluster crawl %%DIR%%/map.json;\n" . join('', map {
        "urlstore_zone u$_ 8m cluster=crawl shard=$_ node=us_$_$name"
        . " replicate=postgres:\@%%DIR%%/log replicas=0 $options;\n"
    } 0 .. $shards - 1) . <<'CONF' . join '', map { <<CONF } 0 .. $shards - 1;
urlstore_cluster other %%DIR%%/other.json;
urlstore_zone m 8m path=%%DIR%%/m cluster=other shard=9 node=us_9;
server {
    listen 127.0.0.1:%%PORT%%;
    location = /cluster { urlstore_cluster_admin crawl; }
    location = /other { urlstore_cluster_admin other; }
    location /m/ { urlstore_api m; }
CONF
    location /$_/ { urlstore_api u$_; }
CONF

    return $t->run($conf{$t} .= "}\n");
}


sub true { JSON::PP::true }
sub false { JSON::PP::false }
sub state { $_[0]->get("/$_[1]/health")->json->{status} }


sub becomes
{
    my ($t, $shard, $state) = @_;

    return ok(wait_until(20, sub { state($t, $shard) eq $state }),
        "  shard $shard: $state") || diag(state($t, $shard));
}


# what the command prints, its exit code, and standard error

sub command
{
    my ($t, $arguments) = @_;

    return cluster('promote http://127.0.0.1:' . $t->port . $arguments);
}


sub cluster
{
    my ($arguments) = @_;

    my $out = `$top/build/urlstore cluster $arguments 2>$dir/err`;

    return $out . ($? >> 8) . "\n" . slurp("$dir/err");
}


# --- promotion by command

my $a = node('a', 2, 'lease=1s');

becomes($a, $_, 'ready') for 0, 1;

my $b = node('b', 2, 'lease=1s');

becomes($b, $_, 'standby') for 0, 1;

my $r = $b->post('/cluster?promote=1', '');

is($r->{status}, 200, 'one shard is promoted');
is_deeply($r->json, [{ shard => 1, node => 'us_1b', term => 2 }],
    '  the answer names it');
is(state($b, 1), 'ready', '  which is the primary');
is(state($b, 0), 'standby', '  the other one is not');
becomes($a, 1, 'standby');
is(state($a, 0), 'ready', '  and the other one stays');

$r = $b->post('/cluster?promote', '');
is($r->{status}, 200, 'all of them');
is_deeply($r->json, [{ shard => 0, node => 'us_0b', term => 2 },
    { shard => 1, node => 'us_1b', term => 2 }],
    '  what is the primary keeps its term');
becomes($a, 0, 'standby');

like($b->error_log, qr/"u0": to become the primary, by command/, '  logged');
is(() = $b->error_log =~ /"u1": to become the primary/g, 1,
    '  not for what is one');

is(command($a, ' --shard 1'), "1\tus_1a\t3\n0\n", 'by the program');
is(command($a, ' --shard 0'), "0\tus_0a\t3\n0\n", '  and shard 0');
is(command($a, '/cluster'), "0\tus_0a\t3\n1\tus_1a\t3\n0\n", '  with a path');
becomes($b, $_, 'standby') for 0, 1;


# --- maps: a shard's primary adopts, and its standby gets the map by the log

my ($pa, $pb) = ($a->port, $b->port);
my @uuid = map { $a->get("/$_/stats")->json->{uuid} =~ tr/-//dr } 0, 1;

spew("$dir/nodes", "us_0a 127.0.0.1:$pa\nus_1a 127.0.0.1:$pa\n"
    . "us_0b 127.0.0.1:$pb\nus_1b 127.0.0.1:$pb\n");
spew("$dir/map", cluster("new 0=$uuid[0],us_0a,us_0b 1=$uuid[1],us_1b,us_1a")
    =~ s/0\n\z//r);
$r = $b->post('/cluster', slurp("$dir/map"));
is($r->{status}, 503, 'a map is posted to standbys');
is($r->{headers}{'urlstore-refused'}, 1, '  nothing was done');
is($r->{headers}{'retry-after'}, 1, '  it may be posted again');
is(json($r->{body})->{reason}, 'standby', '  the reason');
is($a->post('/cluster?shard=4096', slurp("$dir/map"))->{status}, 400,
    'no shard');
is($b->get('/cluster')->{status}, 404, 'there is no map');

$r = $b->post('/cluster?promote=1', '');
is($r->{status}, 200, 'each node has a primary');
becomes($a, 1, 'standby');

my $standby = "503: this node is a standby: it gets the map from the primary "
    . "of its shard\n";
my $urls = join '', map {
    my ($port, $query, $got) = @$_;
    "$query\tus_$query" . ($port == $pa ? 'a' : 'b')
        . "\thttp://127.0.0.1:$port/cluster\t" . ($got ? "adopted\n"
        : "standby\t127.0.0.1:$port/cluster?shard=$query: $standby")
} [$pa, 0, 1], [$pb, 0, 0], [$pb, 1, 1], [$pa, 1, 0];

is(cluster("apply --nodes $dir/nodes $dir/map"), "${urls}0\n",
    'urlstore cluster apply finds the primaries');

for my $path ('', '/0', '/1') {
    for my $t ($a, $b) {
        ok(wait_until(20, sub {
            my $got = $t->get("$path/cluster");

            return $got->{status} == 200 && $got->json->{version} == 1;
        }), "  GET $path/cluster of a node");
    }
}

is($a->post('/cluster', slurp("$dir/map"))->{status}, 204,
    'without ?shard: the primaries of the nginx');

# all URLs are of shard 0 or 1

my %add = map { $_->[0] => json($_->[1]->post("/$_->[0]/add?url=http://a.test/",
    '')->{body})->{status} // '' } [0, $a], [1, $b];
my ($owner) = grep { $add{$_} eq 'new' } 0, 1;

ok(defined $owner, 'an owner adds');
ok(wait_until(20, sub {
    ($owner ? $a : $b)->get("/$owner/seen?url=http://a.test/")->{status} == 200
}), '  its standby has it');
is(($owner ? $a : $b)->get("/$owner/seen?url=http://b.test/")->{status}, 503,
    '  and denies nothing');



# --- what they report

my ($primary, $other) = $owner ? ($b, $a) : ($a, $b);
my $stats = $primary->get("/$owner/stats")->json;

is_deeply([ @$stats{qw(state is_primary stalled lag_bytes urls persistent)} ],
    [ 'ready', true(), false(), 0, 1, true() ], 'stats of a primary');
is($stats->{holder}, $stats->{node}, '  which has the term');
is($stats->{confirmed}, $stats->{published}, '  all is confirmed');
cmp_ok($stats->{log_age}, '<', 1, '  its lease is young');
cmp_ok($stats->{log_rows}, '>=', 2, '  rows: the map and a URL');

my $its = $other->get("/$owner/stats")->json;

is_deeply([ @$its{qw(state is_primary stalled lag_bytes urls term holder)} ],
    [ 'standby', false(), false(), 0, 1, @$stats{qw(term node)} ],
    'stats of its standby');
is($its->{confirmed}, $stats->{confirmed}, '  it knows what is confirmed');
isnt($its->{node}, $stats->{node}, '  it has another name');
is($its->{deposed} + $stats->{deposed}, $stats->{promotions}
    + $its->{promotions} - 1, '  each primary but the last was deposed');

my $health = $other->get("/$owner/health");

is($health->{status}, 503, 'health of a standby');
is_deeply([ @{ $health->json }{qw(status node holder term lag_bytes)} ],
    [ 'standby', $its->{node}, @$stats{qw(node term)}, 0 ], '  says of whom');
like($primary->get("/$owner/metrics")->{body},
    qr/^urlstore_primary\{zone="u$owner",shard="$owner"\} 1$/m,
    'metrics of a primary');
like($other->get("/$owner/metrics")->{body},
    qr/^urlstore_state\{zone="u$owner",shard="$owner",state="standby"\} 1$/m,
    'metrics of a standby');

is($a->post('/cluster?promote', '')->{status}, 200, 'back again');
becomes($b, $_, 'standby') for 0, 1;


# --- what is refused

for my $bad ('=', '=x', '=4096', '=-1', '=99999999999999999999', '=1&a=1') {
    is($a->post("/cluster?promote$bad", '')->{status}, 400, "promote$bad");
}

for my $none (['/other?promote=9', 'a shard that is not replicated'],
    ['/other?promote', 'a cluster without one that is'],
    ['/cluster?promote=7', 'none that is here'])
{
    $r = $a->post($none->[0], '');
    is($r->{status}, 409, $none->[1]);
    is(json($r->{body})->{reason}, 'replicate', '  by its reason');
}

like(command($a, '/other'),
    qr{^1\nurlstore: \S+: 409: no zone of this nginx .*=$},
    '  as the program says it');

is($a->post('/cluster?promoted', '')->{status}, 400, 'another argument');
is($b->get('/cluster?promote')->{status}, 200, 'GET does not promote');
is(state($b, 0), 'standby', '  anybody');
like(command($a, ' --shard x'), qr/^2\n.*"x" is not the number/, 'no number');
like(command($a, ' x'), qr/^2\n.*usage: urlstore cluster/ms, 'usage');


# --- the log is away, for longer than a command is in force

if (full()) {
    my $start = time;

    $pg->stop('fast');
    $r = $b->post('/cluster?promote=0', '');
    is($r->{status}, 503, 'without the log it is not promoted');
    is($r->{headers}{'retry-after'}, 1, '  it may be sent again');
    like(json($r->{body})->{detail},
        qr/^node us_0b of shard 0 is .*; its state is standby: the log/,
        '  the reason');
    cmp_ok(time - $start, '<', 14, '  in time');
    like(command($b, ' --timeout 1'), qr/^2\n.*: 503: node us_0b/,
        '  as the program says it');
    sleep 2;
    $pg->start;
    becomes($a, $_, 'ready') for 0, 1;
    is(state($b, $_), 'standby', "  shard $_: nobody is promoted later")
        for 0, 1;
}


# --- the primary's clock is ahead by more than a unit: the standby says so

SKIP: {
    skip 'no fault clock', 5
        if $ENV{US_ASAN} || !-e $UrlStore::Test::FAULT_CLOCK;

    $_->stop for $a, $b;
    $pg->sql("DELETE FROM $_") for qw(urlstore_log urlstore_base
        urlstore_shard);
    $a = node('a', 1, 'revisit=1m', clock => 1);
    $a->clock(7200);
    becomes($a, 0, 'ready');
    $b = node('b', 1, 'revisit=1m');
    becomes($b, 0, 'standby');
    spew("$dir/map", cluster('new 0=' . $a->get('/0/stats')->json->{uuid}
        =~ tr/-//dr . ',us_0a,us_0b') =~ s/0\n\z//r);
    is($a->post('/cluster', slurp("$dir/map"))->{status}, 204, 'a map');
    like($a->post('/0/add', "http://clock.test/\n", 'Content-Type' =>
        'text/plain')->{body}, qr/new/, 'a claim by a clock that is ahead');
    ok(wait_until(20, sub { $b->error_log
        =~ /\[warn\].*"u0": its clock of claims is 7\d\d\d seconds ahead/ }),
        '  is seen by the standby');
}
