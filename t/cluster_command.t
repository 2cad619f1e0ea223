#!/usr/bin/perl

# urlstore cluster: maps are made, checked, shown, turned into nginx
# configuration, and applied to nodes that refuse, start, hang or are down.

use strict;
use warnings;

use lib 't/lib';

use Compress::Zlib qw(crc32);
use IO::Socket::INET;

use UrlStore::Fake;
use UrlStore::Test;

my $t = UrlStore::Test->new;

$t->allow(qr/is not adopted|the map .* is not used/);

my ($dir, $top) = ($t->dir, $UrlStore::Test::TOP);
my @uuid = map { sprintf '%x', $_ } 1 .. 9;

$_ .= '123456789abcdef0123456789abcdef' for @uuid;


# standard output, the exit code and standard error

sub cluster
{
    my ($arguments) = @_;

    my $out = `cd $dir && $top/build/urlstore cluster $arguments 2>err`;

    return $out . ($? >> 8) . "\n" . slurp("$dir/err");
}


# --- the first map, and growth

my $norm = 'crawler/1 www=first';
my $new = cluster("new --key site 0=$uuid[0],us_0a,us_0b");
my ($id) = $new =~ /"cluster": "([0-9a-f]{32})"/;

is($new, <<"MAP" =~ s/NORM/$norm/r, 'new');
{
  "cluster": "$id",
  "version": 1,
  "norm": "NORM",
  "key": "site",
  "shards": {
    "0": {"uuid": "$uuid[0]", "nodes": ["us_0a", "us_0b"]}
  },
  "slots": [
    ["0-4095", 0]
  ]
}
0
MAP

isnt((cluster("new 0=$uuid[0],a") =~ /"cluster": "(\w+)"/)[0], $id,
    'another cluster has another id');
like(cluster("new --norm 'x y' 3=$uuid[0],a 4=$uuid[1],b"),
    qr/"norm": "x y",\n  "key": "url",.*"0-2047", 3\],\n.*"2048-4095", 4\]/s,
    'two shards from the beginning, by URL');

spew("$dir/m1", $new =~ s/0\n\z//r);
spew("$dir/m2", cluster("grow m1 1=$uuid[1],us_1") =~ s/0\n\z//r);
spew("$dir/m3", cluster("grow m2 2=$uuid[2],us_2 3=$uuid[3],us_3")
    =~ s/0\n\z//r);

like(slurp("$dir/m2"),
    qr/"version": 2,.*\["0-2047", 0\],\n    \["2048-4095", 1, 0\]\n/s, 'grow');
is(cluster("grow m3 1=$uuid[4],x"), "1\nurlstore: shard 1 is there twice\n",
    'a number is used once');
like(cluster('grow m1 1=x'), qr/^2\nurlstore: "1=x" is no shard: NUMBER=UUID/,
    'what a shard is');


# by a sample: a site that has half of the URLs has one of two shards alone

spew("$dir/sample", join '', map { ("http://www.large.test/$_\n",
    "http://s$_.test/\n") } 1 .. 2000);

my $large = crc32('large.test') >> 20;
my $sampled = cluster("new --sample sample --key site 0=$uuid[0],a "
    . "1=$uuid[1],b 2=$uuid[2],c");

my ($own) = grep { $large >= $_->[0] && $large <= $_->[1] }
    map { [/\["(\d+)(?:-(\d+))?"/ ? ($1, $2 // $1) : ()] }
    grep { /\["\d/ } split /\n/, $sampled;

cmp_ok($own->[1] - $own->[0], '<', 1200, 'a large site makes its range short');
unlike($sampled, qr/"0-1365", 0/, '... and others longer');
like(cluster("new --sample nothing 0=$uuid[0],a"),
    qr/^2\nurlstore: nothing: open: No such file/, 'a sample that is missing');
spew("$dir/sampled", $sampled =~ s/0\n\z//r);
spew("$dir/grown", cluster("grow --sample sample sampled 3=$uuid[3],d")
    =~ s/0\n\z//r);
like(cluster('check grown sampled'), qr/^version 2, 4 shards/,
    'grow by a sample');


# --- check

like(cluster('check m2'), qr/^version 2, 2 shards, digest [0-9a-f]{32}\n0\n$/,
    'check');
like(cluster('check m3 m1'), qr/^version 3.*\n0\n$/, 'a version was skipped');
is(cluster('check m2 m3'), "1\nurlstore: \"m2\": the map has version 2, lower "
    . "than the 3 that is there\n", 'an older map');
like(cluster('check - <m1'), qr/^version 1/, 'from standard input');

spew("$dir/bad", slurp("$dir/m2") =~ s/\["2048-4095", 1, 0\]/["4000", 9]/r);
is(cluster('check bad'), "1\nurlstore: \"bad\": slot 2048 has no owner\n",
    'what is wrong');
is(cluster('check nothing'), "2\nurlstore: \"nothing\": No such file or "
    . "directory\n", 'no file');

spew("$dir/dropped", slurp("$dir/m2") =~ s/1, 0\]/1]/r =~ s/: 2/: 4/r);
is(cluster('check dropped m2'), "1\nurlstore: \"dropped\": slot 2048 has lost "
    . "shard 0; an owner of a slot stays one of its former owners for ever\n",
    'a former owner was dropped');


# --- show

my $digest = (cluster('check m3') =~ /digest (\w+)/)[0];

is(cluster('show m3'), <<"SHOW", 'show');
cluster    $id
version    3
digest     $digest
norm       $norm
key        site
questions  1.000 a new URL

shard  slots     share  asked  uuid                              nodes
0      1024    25.00 %  3072   $uuid[0]  us_0a us_0b
1      1024    25.00 %  1024   $uuid[1]  us_1
2      1024    25.00 %  0      $uuid[2]  us_2
3      1024    25.00 %  0      $uuid[3]  us_3
0
SHOW

my $slot = crc32('example.com') >> 20;

is(cluster('show m1 http://www.Example.com/a https://example.com x'),
    "$slot\t0\t-\thttp://www.example.com/a\n"
    . "$slot\t0\t-\thttps://example.com/\n!no-base\n1\n",
    'the slot of a URL');
spew("$dir/moved", slurp("$dir/m2")
    =~ s/("slots": \[).*(\n  \])/$1\n["0-4095", 1, 0]$2/sr);
is(cluster('show moved http://example.com/'),
    "$slot\t1\t0\thttp://example.com/\n0\n", '... and its former owners');


# --- conf: nginx takes it

spew("$dir/nodes", "# where they are\nus_0a 127.0.0.1:8001\r\n\n"
    . "us_0b\t[::1]:8002 # here\nus_1 127.0.0.1:8003\n"
    . "us_2 127.0.0.1:8004\nus_3 127.0.0.1:8005\n");

my $conf = cluster('conf --nodes nodes m3') =~ s/0\n\z//r;

is(() = $conf =~ /^upstream \w+ \{\n    server \S+;\n    keepalive 32;\n\}$/mg,
    5, 'an upstream for each node');
like($conf, qr/upstream us_0b \{\n    server \[::1\]:8002;/, 'its address');
like($conf, qr/^# .* cluster $id, version 3$/m, 'of which map');
like(cluster('conf m1'), qr/^2\nurlstore: conf needs --nodes, the addresses/,
    'without addresses');

spew("$dir/conf", $conf);
is(($t->check("include $dir/conf; server { listen 127.0.0.1:%%PORT%%;\n"
    . "location / { set \$n us_1; proxy_pass http://\$n\$uri; } }"))[0], 0,
    'nginx -t') or diag(slurp("$dir/conf"));

spew("$dir/short", "us_0a 127.0.0.1:8001\n");
is(cluster('conf --nodes short m3'), "2\n" . join('', map {
    "urlstore: no address of node \"$_\"\n" } qw(us_0b us_1 us_2 us_3)),
    'nodes without address: no half of a file');

spew("$dir/twice", slurp("$dir/nodes") . "us_1 127.0.0.1:8006\n");
is(cluster("$_ m3"), "2\nurlstore: more than one address of node \"us_1\"\n",
    "a node with two addresses: $_") for 'conf --nodes twice',
    'apply --nodes twice';

for my $line ('us_0a', 'us_0a a b', 'us_0a a;b', 'us_0a "a"', 'us_0a a/b') {
    spew("$dir/broken", "\n$line\n");
    is(cluster('conf --nodes broken m1'), "2\nurlstore: \"broken\": line 2 is "
        . "not NODE HOST:PORT\n", "\"$line\"");
}


# --- apply, to nodes that answer by a script: /NODE/NAME/cluster

my $map = slurp("$dir/m2");
my %steps = (
    old => [ { text => slurp("$dir/m1") }, map { { status => 204 } } 1 .. 2 ],
    both => [ map({ { text => slurp("$dir/m1") } } 1, 2),
        map { { status => 204 } } 1 .. 9 ],
    same => [ { text => $map }, map { { status => 204 } } 1 .. 2 ],
    first => [ { status => 404 }, map { { status => 204 } } 1 .. 2 ],
    starts => [ map({ { status => 503 } } 1 .. 3),
        { problem => { detail => 'it starts' }, status => 503 },
        { status => 204 } ],
    lost => [ { status => 404 }, { status => 204 }, { drop => 'sent' },
        { status => 204 } ],
    newer => [ { text => slurp("$dir/m3") }, { status => 204 } ],
    refuses => [ { status => 404 },
        { problem => { detail => 'another uuid' }, status => 409 } ],
    late => [ { status => 404 }, { status => 204 },
        { problem => { detail => 'another uuid' }, status => 409 } ],
    other => [ { status => 404 }, { status => 200 } ],
    never => [ map { { status => 503 } } 1 .. 99 ],
    hangs => [ map { { hang => 5 } } 1 .. 9 ],
    ends => [ { drop => 'sent' }, { problem => { detail => 'a standby' },
        status => 409 } ],
    stands => [ { problem => { detail => 'a standby' }, status => 409 } ],
);
my $fake = UrlStore::Fake->new(sub { $steps{$_[0]}[$_[1]] });
my $round = 0;


# what apply prints for nodes of these names, shortened

sub apply
{
    my ($options, @names) = @_;

    my $out = cluster("apply $options m2 " . join ' ',
        map { 'http://127.0.0.1:' . $fake->port . "/$round/$_/cluster" }
        @names);

    return $out =~ s{^-\t-\thttp://\S+/(\w+)/cluster}{$1}gmr
        =~ s{127\S+?/(\w+)/cluster(\S*): }{$1$2: }gr;
}


is(apply('', qw(old first same)), "old\tadopted\nfirst\tadopted\nsame\tadopted"
    . "\n0\n", 'apply');

my @requests = $fake->requests("$round/old");
is(join(' ', map { $_->{method} } @requests), 'GET POST POST',
    'look, check, then post');
is($requests[1]{target} =~ s/.*cluster//r, '?check=1', 'the check');
is($requests[2]{target} =~ s/.*cluster//r, '', '  and not');
is($requests[$_]{headers}{'content-type'}, 'application/json', 'a map'),
is($requests[$_]{json}{slots}[1][0], '2048-4095', '... that one') for 1, 2;

$round++;
is(apply('', qw(starts lost old)), "starts\tadopted\nlost\tadopted\n"
    . "old\tadopted\n0\n", 'until each has it');
is(scalar $fake->requests("$round/starts"), 5, '... and not oftener');
is(scalar $fake->requests("$round/old"), 3, '... to those that lack it');

$round++;
my $d1 = (cluster('check m1') =~ /digest (\w+)/)[0];
my $stays = "pending\tnothing was posted";
my $there = "; there is version 1, digest $d1";

is(apply('', qw(old newer first)), "old\t$stays$there\n"
    . "newer\trefused\tthe map has version 2, lower than the 3 that is there; "
    . "there is version 3, digest $digest\nfirst\t$stays\n1\n",
    'a map that may not follow');
is((grep { $_->{target} !~ /check=1$/ && $_->{method} eq 'POST' }
    $fake->requests("$round/old")), 0, 'is not posted to anyone');

$round++;
is(apply('', qw(refuses old)), "refuses\trefused\trefuses?check=1: 409: "
    . "another uuid\nold\t$stays$there\n1\n", 'a node refuses the check');

$round++;
is(apply('', qw(late old)), "late\trefused\tlate: 409: another uuid\n"
    . "old\tadopted\n1\n", 'a node refuses after it');

$round++;
like(apply('--timeout 1', qw(never old)),
    qr/^never\tpending\tnever: 503: \nold\tadopted\n2\n/, 'in time');

$round++;
my $start = time;
is(apply('--timeout 1', qw(hangs old)), "hangs\tpending\t127.0.0.1:"
    . $fake->port . ": no answer for 1 s\nold\tadopted\n2\n",
    'a node that hangs');
cmp_ok(time - $start, '<', 5, '  keeps nobody waiting for it');

$round++;
is(apply('', 'other'), "other\trefused\t200 is no answer of "
    . "urlstore_cluster_admin\n1\n", 'what is no shard');

for (['ends', '; the answer to an earlier try was lost: the rebase was '
    . 'interrupted, or is done'], ['stands', ''])
{
    is(cluster('rebase http://127.0.0.1:' . $fake->port . "/0/$_->[0]/cluster")
        =~ s/127\S+/URL/r, "1\nurlstore: URL 409: a standby$_->[1]\n",
        "rebase: $_->[0]");
}

my $closed = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1)
    or die $!;
my $port = $closed->sockport;
close $closed;

$round++;
spew("$dir/nodes", "us_0a 127.0.0.1:$port\nus_0b 127.0.0.1:$port\n"
    . 'us_1 127.0.0.1:' . $fake->port . "\n");

my $at = "/$round/old/cluster";
my $down = "http://127.0.0.1:$port$at\tpending\t127.0.0.1:$port: Connection "
    . "refused\n";
my $up = 'http://127.0.0.1:' . $fake->port . $at;

is(cluster("apply --timeout 1 --path $at --nodes nodes m2"),
    "0\tus_0a\t${down}0\tus_0b\t${down}1\tus_1\t$up\tadopted\n2\n",
    'nodes, of which some are down');

# a new shard that nobody can ask

$round++;
$at = "/$round/both/cluster";
$up = 'http://127.0.0.1:' . $fake->port . $at;
spew("$dir/nodes", "us_1 127.0.0.1:$port\n" . join '',
    map { "us_0$_ 127.0.0.1:" . $fake->port . "\n" } 'a', 'b');

my $refused = cluster("apply --timeout 1 --path $at --nodes nodes m2");

like($refused, qr/^0\tus_0$_\t$up\tpending\tnothing was posted/m,
    "a new shard is down: 0$_") for 'a', 'b';
like($refused, qr/^1\tus_1\t\S+\trefused\t.*Connection refused; its shard /m,
    '  it is refused');
like($refused, qr/\(--force\)\n1\n\z/, '  without --force');

$round++;
$at = "/$round/both/cluster";
like(cluster("apply --force --timeout 1 --path $at --nodes nodes m2"),
    qr/a\t\S+\tadopted\n.*b\t\S+\tadopted\n.*us_1\t\S+\tpending.*\n2\n/,
    '  with --force');

# maps of running nodes

my $url = 'http://127.0.0.1:' . $fake->port . '/99';

like(cluster("check $url/same/cluster"), qr/^version 2/, 'check URL');
like(cluster("check m2 $url/old/cluster"), qr/^version 2.*\n0\n$/,
    'what runs is the old one');
like(cluster("show $url/first/cluster"), qr/^2\nurlstore: .*: 404: /,
    'a node without a map');
like(cluster("show http://127.0.0.1:$port/"),
    qr/^2\nurlstore: .*Connection refused/, 'a node that is down');


# --- shards: the way from the first start to growth

$t->run(<<'CONF');
urlstore_cluster c %%DIR%%/map.json;
urlstore_zone a 8m path=%%DIR%%/a cluster=c shard=0 node=us-a;
urlstore_zone b 8m path=%%DIR%%/b cluster=c shard=1 node=us-b;
urlstore_zone c 8m path=%%DIR%%/c cluster=c shard=2 node=us-c;
server {
    listen 127.0.0.1:%%PORT%%;
    location /a/ { urlstore_api a; }
    location /b/ { urlstore_api b; }
    location /c/ { urlstore_api c; }
    location = /cluster { urlstore_cluster_admin c; }
}
CONF

my $service = 'http://127.0.0.1:' . $t->port;
my ($a, $b, $c) = map {
    ok($t->ready(below => "/$_"), "shard $_");
    $t->get("/$_/stats")->json->{uuid};
} qw(a b c);

spew("$dir/s1", cluster("new --norm "
    . "'@{[$t->get('/a/stats')->json->{normalization}]}' 0=$a,us-a 1=$b,us-b")
    =~ s/0\n\z//r);
spew("$dir/nodes", join '', map { "us-$_ 127.0.0.1:@{[$t->port]}\n" } 'a'
    .. 'd');


# what apply prints for its nodes, in short

sub nodes
{
    return cluster("apply --timeout 3 --nodes nodes $_[0]")
        =~ s{http://\S+/cluster\b}{cluster}gr =~ s{127\S+/cluster}{}gr;
}


my @got = map { "$_->[0]\tus-$_->[1]\tcluster\t" } [0, 'a'], [1, 'b'],
    [2, 'c'], [3, 'd'];

is(nodes('s1'), "$got[0]adopted\n$got[1]adopted\n0\n", 'the first map');
is(cluster("check $_"), cluster('check s1'), "is there: $_")
    for "$service/a/cluster", "$service/b/cluster", "$service/cluster",
    $service;

# a wrong uuid, which no map could mend, and an address of another shard

my $has = '; there is version 1, digest '
    . (cluster('check s1') =~ /digest (\w+)/)[0];
my $not = "pending\tnothing was posted$has\n";

spew("$dir/s2", cluster("grow s1 2=$uuid[2],us-c") =~ s/0\n\z//r);
is(nodes('s2'), "$got[0]$not$got[1]$not$got[2]refused\t?shard=2&check=1: 409: "
    . "the map is refused: its shard 2 is another store, of uuid $uuid[2]; "
    . "this one has the uuid @{[$c =~ tr/-//dr]}$has\n1\n", 'a wrong uuid');
spew("$dir/s2", cluster("grow s1 3=$uuid[2],us-d") =~ s/0\n\z//r);
is(nodes('s2'), "$got[0]$not$got[1]$not$got[3]refused\t?shard=3&check=1: 409: "
    . "the map is refused: this nginx has no shard 3 of the cluster$has\n1\n",
    'the address of another shard');
is($t->post('/cluster?shard=3', slurp("$dir/s2"))->{status}, 409,
    '  it does not adopt it either');
is($t->get("/$_/stats")->json->{map_version}, 1, "  shard $_ has the old map")
    for 'a', 'b';

spew("$dir/s2", cluster("grow s1 2=$c,us-c") =~ s/0\n\z//r);
is(nodes('s2'), "$got[0]adopted\n$got[1]adopted\n$got[2]adopted\n0\n",
    'the next');
is(cluster("apply s2 $service/cluster"), "-\t-\t$service/cluster\tadopted\n"
    . "0\n", '... once more');
like(cluster("apply s1 $service/cluster"), qr/refused\tthe map has version 1, /,
    '... not the one before');

# past the command's own check, the shard refuses

spew("$dir/s3", slurp("$dir/s2") =~ s/us-c/us-e/r);
is($t->post('/cluster', slurp("$dir/s3"), 'Content-Type' => 'application/json')
    ->{status}, 409, 'another content of version 2');


# --- usage

for my $bad ('', 'nothing', 'check', 'check m1 m2 m3', 'conf', 'conf m1 m2',
    'new', 'grow m1', 'apply m1', 'apply', 'new --key host 0=x',
    'apply --timeout 0 m1 http://a/', 'apply --timeout x m1 http://a/')
{
    like(cluster($bad), qr/^2\n.*usage: urlstore cluster /ms, "usage: $bad");
}

like(cluster('apply m1 https://a/'),
    qr{^2\nurlstore: "https://a/" is not http://}, 'no TLS');
like(cluster('show m1 >/dev/full'), qr/^2\n.*could not be written/m,
    'output that cannot be written');
