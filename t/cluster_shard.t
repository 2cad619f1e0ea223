#!/usr/bin/perl

# Zones that are shards of a cluster: how they get a map and what they answer
# under it; their ids; the header Urlstore-Map; maps that are refused; maps and
# kills.  Three shards in one nginx, without a router.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep);

use UrlStore::Test;

my $t = UrlStore::Test->new(workers => 2, log => 'notice');
my @text = ('Content-Type' => 'text/plain');
my $cluster = '0123456789abcdef' x 2;
my $norm;
my %uuid;

$t->allow(qr/cannot change/, qr/are those of shard/, qr/are of no cluster/,
    qr/a shard needs/, qr/invalid value/, qr/is not adopted/,
    qr/the map .* is not used/);

sub conf
{
    my (%o) = @_;
    my $shards = join "\n", map {
        my $c = $o{$_} // "cluster=c shard=$_ node=n$_";
        "urlstore_zone s$_ 8m path=%%DIR%%/s$_ sync=1s $c;"
    } 0 .. 2;

    return <<"CONF";
urlstore_cluster c %%DIR%%/map.json;
$shards
server {
    listen 127.0.0.1:%%PORT%%;
    location /0/ { urlstore_api s0; }
    location /1/ { urlstore_api s1; }
    location /2/ { urlstore_api s2; }
    location = /admin { urlstore_cluster_admin c; }
}
CONF
}


# a map; slots are [range, owner, former...]

sub map_of
{
    my ($version, $slots, %o) = @_;

    return json_text({
        cluster => $o{cluster} // $cluster, version => $version,
        norm => $o{norm} // $norm, key => $o{key} // 'site',
        shards => { map { $_ => { uuid => $o{"uuid$_"} // $uuid{$_},
            nodes => ["n$_"] } } @{$o{shards} // [0 .. 2]} },
        slots => $slots });
}

sub json_text { return JSON::PP->new->canonical->encode($_[0]) }

sub apply
{
    return $t->post('/admin', $_[0], 'Content-Type' => 'application/json');
}


sub ask
{
    my ($what, $url, @h) = @_;

    return $t->post("/$what", "$url\n", @text, @h)->{body};
}

sub add { my $n = shift; return ask("$n/add", @_) }
sub seen { my $n = shift; return ask("$n/seen", @_) }


# the header of a router with the map that shard $n has

sub tag
{
    my ($n, %o) = @_;
    my ($version, $digest) = $t->get("/$n/cluster")->{headers}{etag}
        =~ /"(\d+)-(\w{32})"/;

    return ('Urlstore-Map' => join ' ', $o{cluster} // $cluster,
        $o{shard} // $n, $version + ($o{ahead} // 0), $o{digest} // $digest);
}


# URLs by the quarter of the slots that they are in

my @of;

for my $i (0 .. 200) {
    my $url = "http://h$i.test/";
    push @{$of[crc32("h$i.test") >> 30]}, $url;
}

$t->run(conf());
ok($t->ready(below => "/$_"), "shard $_ is ready") for 0 .. 2;


# without a map

for my $n (0 .. 2) {
    my $stats = json($t->get("/$n/stats")->{body});

    $uuid{$n} = $stats->{uuid} =~ tr/-//dr;
    $norm = $stats->{normalization};
}

is(add(0, $of[0][0]), "-\tunavailable\tmoved\n", 'without a map: no add');
is(seen(0, $of[0][0]), "-\tunavailable\tmoved\n", 'and no look-up');
is($t->get('/0/cluster')->{status}, 404, 'there is no map');
is($t->get('/admin')->{status}, 404, 'nor at the admin location');

my $r = $t->post('/1/seen', "$of[0][0]\n", @text, 'Urlstore-Map' =>
    "$cluster 1 1 " . '0' x 32);
is($r->{status}, 503, 'a router is refused');
is($r->{headers}{'urlstore-refused'}, 1, 'and may ask another node');


# maps that are refused

$r = apply(map_of(1, [['0-4095', 0]], shards => [0, 1]));
is($r->{status}, 409, 'a map without a shard');
like($r->{body}, qr/it has no shard 2/, 'says so');
$r = apply(map_of(1, [['0-4095', 0]], uuid1 => '1' x 32));
like($r->{body}, qr{shard 1 is another store.*@{[$uuid{1}]}}, 'another store');
$r = apply(map_of(1, [['0-4095', 0]], norm => 'crawler/1'));
like($r->{body}, qr/its \\"norm\\" is \\"crawler\/1\\"/, 'another norm');
is(apply('{}')->{status}, 400, 'no map');
is(apply('x' x 1048577)->{status}, 413, 'a map that is too long');
is($t->get('/0/cluster')->{status}, 404, 'none was adopted');


# the first one: shard 0 has a half, shard 1 a half

$r = apply(map_of(1, [['0-2047', 0], ['2048-4095', 1]]));
is($r->{status}, 204, 'the first map');
is(apply(map_of(1, [['0-2047', 0], ['2048-4095', 1]]))->{status}, 204,
    'posted again');
$r = apply(map_of(1, [['0-2047', 1], ['2048-4095', 0]]));
is($r->{status}, 409, 'another one of the same version');

like($t->get('/1/cluster')->{body}, qr/"version": 1,/, 'GET /cluster');
is($t->get('/1/cluster', 'If-None-Match' =>
    $t->get('/1/cluster')->{headers}{etag})->{status}, 304, 'by its ETag');

my $base = 2 ** 40;

is(add(0, $of[0][0]), "0\tnew\t$of[0][0]\n", 'shard 0 begins with id 0');
is(add(1, $of[2][0]), "$base\tnew\t$of[2][0]\n", 'shard 1 with 2^40');
is(add(1, $of[3][0]), $base + 1 . "\tnew\t$of[3][0]\n", 'and goes on');
is(add(1, $of[0][0]), "-\tunavailable\tmoved\n", 'of another shard');
is(add(0, $of[2][1]), "-\tunavailable\tmoved\n", 'and the other way round');
is(seen(2, $of[2][1]), "-\tunavailable\tmoved\n", 'a shard without slots');
is(seen(1, $of[2][1]), "-\tunseen\t$of[2][1]\n", 'its own are denied');

$r = $t->post('/1/add?summary=1', join("\n", $of[2][2], $of[0][0], $of[2][0],
    ''), @text);
is($r->{body}, join("\n", $base + 2 . "\tnew\t$of[2][2]",
    "-\tunavailable\tmoved", "$base\tseen\t$of[2][0]",
    '# new=1 seen=1 unseen=0 errors=1 next_id=' . ($base + 2) . ' epoch=1',
    ''), 'a batch keeps the answers of its other items');

my $www = $of[2][0] =~ s{//}{//www.}r;
my $mixed = $of[2][0] =~ s{//h}{//H}r;
my $same = join '', map { "$_\n" } $of[2][0], $www, $mixed, $of[2][3],
    $of[0][0];
my $seen = "$base\tseen\t$of[2][0]\n";
my $moved = "-\tunavailable\tmoved\n";

is($t->post('/1/seen?same=1', $same, @text, tag(1))->{body},
    "$base\tseen\t=\n$seen$seen-\tunseen\t=\n$moved",
    'same=1: a URL as it was sent is not sent back');
is($t->post('/1/seen?same=1', $same, @text)->{body},
    "$seen$seen$seen-\tunseen\t$of[2][3]\n$moved", 'but to a client');
is(json($t->post('/1/seen?same=1', $same, @text, tag(1),
    Accept => 'application/json')->{body})->{results}[0]{url}, $of[2][0],
    'and in JSON');

is($t->request(PUT => '/1/set/crawl')->{status}, 201, 'a set of a shard');
$same = join '', map { "$_\n" } $of[2][0], $www, $of[2][0], $of[0][0];
is($t->post('/1/add?same=1&set=crawl', $same, @text, tag(1))->{body},
    "$base\tnew\t=\n$seen$base\tseen\t=\n$moved", 'same=1 of a set');

$r = $t->get('/1/seen?url=' . uri_escape($of[0][0]));
is($r->{status}, 421, 'a single one is misdirected');
is(json($r->{body})->{reason}, 'moved', 'with the reason');


# ids

is($t->get("/1/url/$base")->{body}, "$of[2][0]\n", 'an id');
is($t->get('/1/url/0')->{status}, 421, 'an id of another shard');
is($t->get('/0/url/' . $base)->{status}, 421, 'the other way round');
is($t->get('/1/url/' . ($base + 99))->{status}, 404, 'one not given yet');
is($t->get('/1/url/' . '9' x 16)->{status}, 421, 'one of no shard');
is($t->get("/1/url/$base,0," . ($base + 77))->{body},
    "$base\t$of[2][0]\n0\t-\tunavailable\n" . ($base + 77) . "\t-\tunknown\n",
    'some ids');
is($t->get('/1/urls?limit=2&summary=1')->{body}, "$base\t$of[2][0]\n"
    . ($base + 1) . "\t$of[3][0]\n# next=" . ($base + 2) . "\n", 'the feed');
is($t->get('/1/urls?from=' . ($base + 2))->{body}, $base + 2
    . "\t$of[2][2]\n", 'goes on');
is($t->get('/1/urls?from=5')->{status}, 421, 'not from another shard');
$r = json($t->get('/1/stats')->{body});
is("@$r{qw(next_id shard map_version)}", $base + 3 . ' 1 1', '/stats');
is($r->{cluster} =~ tr/-//dr, $cluster, 'with the cluster');
like($t->get('/1/metrics')->{body},
    qr/^urlstore_map_version\{zone="s1",shard="1"\} 1$/m, '/metrics');
$r = $t->post('/1/add?url=' . uri_escape($of[2][3]), '');
is($r->{headers}{location}, 'url/' . ($base + 3), 'Location');
is($t->forget('/1/url/' . ($base + 3))->{status}, 204, 'a delete');
is($t->get('/1/url/' . ($base + 3))->{status}, 410, 'is one of that id');
is($t->forget('/1/url/3')->{status}, 421, 'a delete of another shard');


# a router's header

my @tag = tag(1);
$r = $t->post('/1/seen', "$of[2][0]\n", @text, @tag);
is($r->{status}, 200, 'the same map');
is($r->{headers}{'urlstore-map'}, $tag[1], 'is named in the reply');
is(ask('1/seen?sites=1', "$of[2][0]\n$of[2][0]x\n$of[3][7]", @tag),
    "$base\tseen\t$of[2][0]\tsite-known\n-\tunseen\t$of[2][0]x\tsite-known\n"
    . "-\tunseen\t$of[3][7]\tsite-new\n", 'and so are sites of unseen URLs');
is(ask('1/seen?sites=1', "$of[3][7]"), "-\tunseen\t$of[3][7]\t-\n",
    'not without the header');
is($t->post('/1/seen', '', @text, tag(1, cluster => 'f' x 32))->{status}, 421,
    'another cluster');
is($t->post('/1/seen', '', @text, tag(1, shard => 0))->{status}, 421,
    'another shard');
is($t->post('/1/seen', '', @text, tag(1, digest => '0' x 32))->{status}, 421,
    'another map of this version');
$r = $t->post('/1/seen', '', @text, tag(1, ahead => 1));
is($r->{status}, 503, 'a newer map');
is($r->{headers}{'urlstore-refused'}, 1, 'is not known here yet');
is($r->{headers}{'urlstore-map'}, $tag[1], 'the reply names the own one');
is($t->post('/1/seen', '', @text, 'Urlstore-Map' => 'x')->{status}, 400,
    'no tag');


# growth: a quarter of each goes to shard 2, by the file of the map

my @grown = (['0-1023', 0], ['1024-2047', 2, 0], ['2048-3071', 2, 1],
    ['3072-4095', 1]);

spew("$t->{dir}/map.tmp", map_of(2, \@grown));
rename "$t->{dir}/map.tmp", "$t->{dir}/map.json" or die $!;

ok(wait_until(10, sub { 3 == grep { $t->get("/$_/cluster")->{headers}{etag}
    =~ /^"2-/ } 0 .. 2 }), 'the map of the file is adopted');

is(add(1, $of[2][9]), "-\tunavailable\tmoved\n", 'sealed: no add');
is(seen(1, $of[2][0]), "$base\tseen\t$of[2][0]\n", 'what is there is seen');
is(seen(1, $of[2][9]), "-\tunavailable\tmoved\n", 'no denial without a map');
is(seen(1, $of[2][9], @tag), "-\tunavailable\tmoved\n",
    'nor by the map before');
is(seen(1, $of[2][9], tag(1)), "-\tunseen\t$of[2][9]\n", 'but by the same');
is(add(2, $of[2][9]), "-\tunavailable\tmoved\n", 'inherited: no add without');
is(add(2, $of[2][9], tag(2)), 2 * $base . "\tnew\t$of[2][9]\n",
    'but by the same');
is(seen(2, $of[2][9]), 2 * $base . "\tseen\t$of[2][9]\n", 'is found by all');
is(add(0, $of[0][5]), "1\tnew\t$of[0][5]\n", 'what was kept goes on');
is($t->get("/1/url/$base")->{body}, "$of[2][0]\n", 'ids stay where they are');

is(apply(map_of(1, [['0-2047', 0], ['2048-4095', 1]]))->{status}, 409,
    'back to the first');
like(apply(map_of(3, [['0-1023', 0], ['1024-3071', 2], ['3072-4095', 1]]))
    ->{body}, qr/the map is refused: /, 'a map without a former owner');


# every process is killed: the seals stay

$t->kill_all;
$t->start;
ok($t->ready(below => "/$_"), "shard $_ is ready again") for 0 .. 2;
is(add(1, $of[2][10]), "-\tunavailable\tmoved\n", 'sealed, after a kill');
is(add(2, $of[2][10], tag(2)), 2 * $base + 1 . "\tnew\t$of[2][10]\n",
    'inherited, after a kill');
is(seen(1, $of[2][0]), "$base\tseen\t$of[2][0]\n", 'and found');


# settings that cannot change

my $from = length $t->error_log;
ok(!$t->reload(conf(1 => 'cluster=c shard=2 node=n1')), 'another number');
like(substr($t->error_log, $from), qr/its "shard" cannot change/, 'readably');

for my $case (
    ['cluster=c shard=1', qr/it has no "node"/],
    ['shard=1 node=n1', qr/it has no "cluster"/],
    ['cluster=c node=n1', qr/it has no "shard"/],
    ['cluster=d shard=1 node=n1', qr/an urlstore_cluster above/],
    ['cluster=c shard=4096 node=n1', qr/a number up to 4095/])
{
    my ($rc, $out) = $t->check(conf(1 => $case->[0]));
    isnt($rc, 0, $case->[0]);
    like($out, $case->[1], 'says why');
}

# the command, on a shard and on its directory

my $urlstore = "$UrlStore::Test::TOP/build/urlstore";
my $service = 'http://127.0.0.1:' . $t->port . '/1';
my $dumped = `$urlstore dump --deleted $service`;

$t->stop;

sub command
{
    my ($in, @args) = @_;

    spew("$t->{dir}/in", $in);
    return scalar qx{$urlstore @args <$t->{dir}/in 2>&1};
}

like(command('', "dump $t->{dir}/s1"), qr/^$base\t\Q$of[2][0]\E$/m, 'dump');
is(command('', "dump --deleted $t->{dir}/s1"), $dumped, 'dump of its service');
is(command("$base\n0\n" . ($base + 3) . "\n", "get $t->{dir}/s1"),
    "$base\t$of[2][0]\n0\t-\tunavailable\n" . ($base + 3) . "\t-\tdeleted\n",
    'get');
is(command("$of[2][0]\n$of[0][0]\n$of[2][33]\n$of[3][33]\n",
    "seen $t->{dir}/s1"), "$base\tseen\t$of[2][0]\n-\tunavailable\tmoved\n"
    . "-\tunavailable\tmoved\n-\tunseen\t$of[3][33]\n", 'seen');
is(command("$of[2][33]\n$of[3][34]\n", "add $t->{dir}/s1"),
    "-\tunavailable\tmoved\n" . ($base + 4) . "\tnew\t$of[3][34]\n", 'add');
like(command("$of[0][33]\n$of[3][35]\n", "import $t->{dir}/s1 -"),
    qr/2 lines: 1 new, 0 seen, 1 refused/, 'import');
like(command('', "stat $t->{dir}/s1"), qr/^store +shard 1$/m, 'stat');
like(command('', "verify $t->{dir}/s1"), qr/good up to/, 'verify');
like(command('', "backup $t->{dir}/s1 $t->{dir}/b1"), qr/backup/, 'backup');
like(command('', "restore $t->{dir}/b1 $t->{dir}/r1"), qr/restore/, 'restore');
like(command('', "dump $t->{dir}/r1"), qr/^$base\t\Q$of[2][0]\E$/m,
    'what is restored is that shard');

for my $case (['', qr/are those of shard 1 of a cluster/],
    ['cluster=c shard=0 node=n1', qr/are those of shard 1/])
{
    my ($rc, $out) = $t->check(conf(1 => $case->[0], 0 => $case->[2]));
    isnt($rc, 0, "as \"$case->[0]\"");
    like($out, $case->[1], 'says why');
}

$t->run(conf());


# a zone with URLs becomes shard 0, at a reload

my $grown = UrlStore::Test->new(workers => 2);
my $plain = <<'CONF';
%s
server {
    listen 127.0.0.1:%%%%PORT%%%%;
    location / { urlstore_api u; }
    location = /admin { urlstore_cluster_admin c; }
}
CONF

$grown->run(sprintf $plain, "urlstore_cluster c %%DIR%%/map.json;\n"
    . 'urlstore_zone u 8m path=%%DIR%%/u;');
ok($grown->ready, 'a zone that is no shard');
is($grown->post('/add', "$of[2][0]\n", @text)->{body}, "0\tnew\t$of[2][0]\n",
    'has a URL');
is($grown->get('/cluster')->{status}, 404, 'and no map');
$uuid{0} = json($grown->get('/stats')->{body})->{uuid} =~ tr/-//dr;

ok($grown->reload(sprintf $plain, "urlstore_cluster c %%DIR%%/map.json;\n"
    . 'urlstore_zone u 8m path=%%DIR%%/u cluster=c shard=0 node=n0;'),
    'it becomes shard 0');

my $both = map_of(1, [['0-2047', 0], ['2048-4095', 1]], shards => [0, 1]);

ok(wait_until(10, sub { $grown->post('/admin', $both)->{body}
    =~ /the store has URLs, and slot 2048 of the map/ }),
    'a first map that would deny its URLs is refused');
is($grown->post('/admin', map_of(1, [['0-4095', 0]], shards => [0]))->{status},
    204, 'one of all slots is not');
is($grown->post('/add', "$of[2][0]\n$of[2][1]\n", @text)->{body},
    "0\tseen\t$of[2][0]\n1\tnew\t$of[2][1]\n", 'its ids go on');


# A backup of before the growth is restored.  Its map counts only when it was
# posted again: others may have taken slots over since.

my $backup = "$grown->{dir}/backup";
my $first = map_of(1, [['0-4095', 0]], shards => [0]);
my $second = map_of(2, [['0-2047', 0], ['2048-4095', 1, 0]],
    shards => [0, 1]);
my $small = sprintf $plain, "urlstore_cluster c %%DIR%%/map.json;\n"
    . 'urlstore_zone u 8m path=%%DIR%%/u cluster=c shard=0 node=n0 '
    . 'sync=always snapshot=32k;';

is(system("$urlstore backup $grown->{dir}/u $backup >/dev/null"), 0,
    'a backup before the growth');
is($grown->post('/admin', $second)->{status}, 204, 'the growth');
ok($grown->stop, 'stopped');
rename "$grown->{dir}/u", "$grown->{dir}/gone" or die $!;
spew("$grown->{dir}/map.json", $first);
like(scalar qx{$urlstore restore $backup $grown->{dir}/u},
    qr/post the newest map: urlstore cluster apply/, 'it is restored');

sub stale
{
    my ($what) = @_;
    my $tag = "$cluster 0 1 " . '0' x 32;

    ok(wait_until(20, sub { (json($grown->get('/health?write=1')->{body})
        // {})->{status} eq 'no-map' }), "$what: it has no map");
    is($grown->post('/seen', "$of[2][0]\n$of[3][0]\n", @text)->{body},
        $moved x 2, '  finds and denies nothing');
    is($grown->post('/add', "$of[3][0]\n", @text)->{body}, $moved,
        '  and adds nothing');
    is($grown->post('/seen', '', @text, 'Urlstore-Map' => $tag)->{status}, 503,
        '  a router is refused');
    is($grown->get('/cluster')->{status}, 404, '  it shows none');
}

$grown->run($small);
stale('restored');
ok(wait_until(10, sub { $grown->error_log
    =~ /was restored, and needs the newest map again/ }), '  and says so');
$grown->kill_all;
$grown->start;
stale('after a kill');
is($grown->post('/admin', $first =~ s/"n0"/"n0","x"/r)->{status}, 409,
    'another map of its version is refused');
is($grown->post('/admin', $first)->{status}, 204, 'the one that it has is not');
is($grown->post('/seen', "$of[2][0]\n$of[3][0]\n", @text)->{body},
    "0\tseen\t$of[2][0]\n-\tunseen\t$of[3][0]\n", '  it answers again');
$grown->kill_all;
$grown->start;
ok($grown->ready(write => 1), '  also after a kill');
is($grown->post('/admin', $second)->{status}, 204, 'and so is the newest');
is($grown->post('/add', "$of[3][0]\n", @text)->{body}, $moved,
    '  it is in force');
like(slurp("$grown->{dir}/u/manifest"), qr/^restored /m,
    'the manifest remembers');
$grown->post('/add', join('', map { "http://h$_.test/$_/\n" } 1 .. 9000),
    @text);
ok(wait_until(30, sub { slurp("$grown->{dir}/u/manifest")
    !~ /^restored /m }), '  up to the next snapshot');
$grown->kill_all;
$grown->start;
ok($grown->ready(write => 1), '  after which it has its map as well');

# moved to another machine: a server that starts without its directory again has
# another store, which no map names

ok($grown->stop, 'moved');
rename "$grown->{dir}/u", "$grown->{dir}/u.moved" or die $!;
spew("$grown->{dir}/map.json", $second);
$grown->allow(qr/uuid/);
$grown->start;
ok(wait_until(20, sub { ($grown->get('/health')->json // {})->{status}
    eq 'ready' }), '  a server starts where it was');
is($grown->post('/add', "$of[2][0]\n$of[3][0]\n", @text)->{body}, $moved x 2,
    '  and answers nothing');
ok(wait_until(10, sub { $grown->error_log
    =~ /its shard 0 is another store, of uuid / }), '  it says why');
is($grown->post('/admin', $second)->{status}, 409, '  nor has it the map');


# a replica of a shard

my $primary = UrlStore::Test->new(log => 'notice');
my $replica = UrlStore::Test->new(log => 'notice');

$replica->allow(qr/are those of shard 1 of a cluster/);
$primary->run(<<'CONF');
urlstore_cluster c %%DIR%%/map.json;
urlstore_zone u 8m path=%%DIR%%/u cluster=c shard=1 node=n1;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location = /log { urlstore_log u; }
    location = /admin { urlstore_cluster_admin c; }
}
CONF
ok($primary->ready, 'a primary');

$uuid{1} = json($primary->get('/stats')->{body})->{uuid} =~ tr/-//dr;

is($primary->post('/admin', map_of(1, [['0-4095', 1]], shards => [1]))
    ->{status}, 204, 'has a map');
is($primary->post('/add', "$of[0][0]\n", @text)->{body},
    "$base\tnew\t$of[0][0]\n", 'and a URL');

sub replica
{
    my ($options) = @_;

    return <<"CONF";
urlstore_cluster c %%DIR%%/map.json;
urlstore_zone u 8m follow=http://127.0.0.1:@{[$primary->port]} $options;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF
}

sub followed
{
    my ($what, $body) = @_;

    return ok(wait_until(20, sub { $replica->post('/seen', "$what\n", @text)
        ->{body} eq $body }), "the replica has $what");
}

$replica->run(replica('cluster=c shard=1 node=n1b'));
ok($replica->ready, 'its replica');
followed($of[0][0], "$base\tseen\t$of[0][0]\n");
is($replica->get("/url/$base")->{body}, "$of[0][0]\n", 'and its id');
is($replica->get('/url/0')->{status}, 421, 'but none of another shard');
is($replica->get('/cluster')->{body}, $primary->get('/cluster')->{body},
    'it has the map');
is($replica->post('/seen', "$of[0][1]\n", @text)->{status}, 503,
    'what it has not is not denied');

is($primary->post('/admin', map_of(2, [['0-2047', 0, 1], ['2048-4095', 1]],
    shards => [0, 1]))->{status}, 204, 'the next map');
ok(wait_until(20, sub { $replica->get('/cluster')->{headers}{etag} =~ /^"2-/ }),
    'is followed');
is($primary->post('/add', "$of[2][0]\n", @text)->{body}, $base + 1
    . "\tnew\t$of[2][0]\n", 'and what comes after it');
followed($of[2][0], $base + 1 . "\tseen\t$of[2][0]\n");

$replica->stop;
$replica->run(replica(''));
ok(wait_until(20, sub { $replica->error_log
    =~ /are those of shard 1 of a cluster/ }), 'a replica needs the number');


# crc32 (IEEE), of the key

sub crc32
{
    my ($s) = @_;
    my $c = 0xffffffff;

    for my $b (unpack 'C*', $s) {
        $c ^= $b;
        $c = $c & 1 ? ($c >> 1) ^ 0xedb88320 : $c >> 1 for 1 .. 8;
    }

    return $c ^ 0xffffffff;
}
