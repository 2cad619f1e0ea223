#!/usr/bin/perl

# Erasures over a router and three shards: ids, URLs and sites, in all formats;
# the names of erasures, their rows added up, their list, and how they are
# lifted; a shard that is away; after a restart; in a cluster that has grown,
# where former owners have to refuse what they have erased.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Compress::Zlib ();

use UrlStore::Cluster;
use UrlStore::Corpora;
use UrlStore::FakeShard;
use UrlStore::Test;

my $c = UrlStore::Cluster->new(shards => 3)->run;
my $t = $c->t;
my @text = ('Content-Type' => 'text/plain');
my @json = ('Content-Type' => 'application/json');
my ($r, $s, $name);

my %id;

for (split /\n/, $t->post('/add', join('', map { "$_\n" }
    @{ corpus('reddit_submissions', 300) }), @text)->{body})
{
    my ($id, $status, $url) = split /\t/;
    $id{$url} = $id if $id ne '-';
}

# a site, and the other URLs of each shard

my @urls = sort { $id{$a} <=> $id{$b} } keys %id;
my (%site, @of);

sub host { return $_[0] =~ s{^https?://(?:www\.)?([^/?#]+).*}{$1}r }

push @{ $site{ host($_) } }, $_ for @urls;

my ($host) = sort { @{ $site{$b} } <=> @{ $site{$a} } || $a cmp $b }
    grep { !/:/ && @{ $site{$_} } < 50 } keys %site;

push @{ $of[$id{$_} >> 40] }, $_ for grep { host($_) ne $host } @urls;

sub rest { return $_[0] =~ s/ next_ids=.*//r }

# nothing answers these URLs, and adding them is refused, by the router and by
# their shards

sub gone
{
    my ($what, @gone) = @_;
    my $body = join '', map { "$_\n" } @gone;

    is($t->post('/seen', $body, @text)->{body} =~ s/^-\tunseen\t.*\n//mgr, '',
        "$what: unseen");
    is($t->post('/add', $body, @text)->{body}, "-\trefused\terased\n" x @gone,
        '  refused');
}


# --- a batch

my @some = (@{ $of[0] }[0, 1], @{ $of[1] }[0, 1], @{ $of[2] }[0, 1]);
my $never = 'http://never.example/stored?a=1';

$r = $t->post('/erase?reason=court%20order%207', "$some[4]\n$never\n"
    . "$id{$some[0]}\nno url\n999999\n$some[2]\n$id{$some[5]}\n", @text);
is($r->{status}, 202, 'ids and URLs');
($name) = $r->{body} =~ / erasure=(\S+) /;
is(rest($r->{body}), "$id{$some[4]}\terased\t$some[4]\n-\terased\t$never\n"
    . "$id{$some[0]}\terased\t-\n-\tinvalid\tno-base\n-\tunknown\t-\n"
    . "$id{$some[2]}\terased\t$some[2]\n$id{$some[5]}\terased\t-\n"
    . "# erased=5 unknown=1 deleted=0 errors=1 erasure=$name\n", '  each');
like($name, qr/\A0\.1_1\.1_2\.1\z/, '  by its parts');
is($r->{headers}{location}, "erase/$name", '  where it is');
gone('of all shards', @some[0, 2, 4, 5], $never);
is($t->get("/url/$id{$_}")->{status}, 410, '  its id is gone')
    for @some[0, 2, 4, 5];

$s = $t->get("/erase/$name")->json;
is_deeply([@$s{qw(erasure kind state listed deleted lifted reason)}],
    [$name, 'urls', 'done', 5, 4, undef, 'court order 7'], 'GET /erase/NAME');
is_deeply([map { $_->{erasure} } @{ $s->{parts} }], [qw(0.1 1.1 2.1)],
    '  its parts');
cmp_ok(abs($s->{$_} - time), '<', 60, "  $_") for qw(created done);
is($s->{unavailable}, undef, '  of all shards');
is($t->get("/erase/$name", Accept => 'text/plain')->{body}
    =~ s/\t\d+\t\d+\t-\tmemory,workers,files\tcourt order 7$//mgr,
    "$name\turls\tdone\t5\t4\n0.1\turls\tdone\t2\t1\n"
    . "1.1\turls\tdone\t1\t1\n2.1\turls\tdone\t2\t2\n", '  as text');


# all other formats

$r = $t->post('/erase', qq(["$of[1][1]",$id{$some[1]}]), @json);
is($r->{status}, 202, 'JSON');
$s = $r->json;
is_deeply($s->{results}, [ { id => $id{$of[1][1]}, status => 'erased',
    url => $of[1][1] }, { id => $id{$some[1]}, status => 'erased',
    url => undef } ], '  each');
is_deeply([@$s{qw(erased unknown deleted errors erasure)}],
    [2, 0, 0, 0, '0.2_1.2'], '  counts, and its name');
$r = $t->post('/erase', qq({"url":"$of[2][2]","ref":7}\n),
    'Content-Type' => 'application/x-ndjson');
is($r->{body} =~ s/,"next_ids".*//r, qq({"id":$id{$of[2][2]},)
    . qq("status":"erased","url":"$of[2][2]","ref":7}\n{"erased":1,)
    . qq("unknown":0,"deleted":0,"errors":0,"erasure":"2.2"\n),
    'NDJSON, with a ref');
$r = $t->post('/erase', 'url=' . uri_escape($of[2][3]),
    'Content-Type' => 'application/x-www-form-urlencoded');
is_deeply([$r->{status}, @{ $r->json }{qw(id status erasure)}],
    [202, $id{$of[2][3]}, 'erased', '2.3'], 'a form: a single one');
$r = $t->post("/erase?id=$id{$of[2][4]}");
is_deeply([$r->{status}, @{ $r->json }{qw(id status url erasure)}],
    [202, $id{$of[2][4]}, 'erased', undef, '2.4'], 'an id of the query');
gone('of all formats', $of[1][1], $some[1], @{ $of[2] }[2, 3, 4]);

$r = $t->post('/erase', "999999\nno url\n", @text);
is($r->{status}, 200, 'nothing that can be erased');
like($r->{body}, qr/^# erased=0 unknown=1 deleted=0 errors=1 erasure=- /m,
    '  begins no erasure');
is($r->{headers}{location}, undef, '  which would be somewhere');


# one request, of more than a shard is sent at once: one erasure of it

my @by;

for (1 .. 30000) {
    my $key = "many.test/$_";
    my $slot = Compress::Zlib::crc32($key) >> 20;

    push @{ $by[(grep { $slot >= int(4096 * $_ / 3) } 0 .. 2)[-1]] },
        "http://$key";
}

$r = $t->post('/erase?brief=1', join('', map { "$_\n" } @{ $by[0] }[0 .. 8999],
    $by[2][0]), @text);
is(() = $r->{body} =~ /^-\terased$/mg, 9001, 'many');
my ($many) = $r->{body} =~ / erasure=(\S+) /;
is($many =~ s/\.\d+//gr, '0_2', '  one erasure of each shard');
is($t->get("/erase/$many")->json->{listed}, 9001, '  of all of them');


# --- one id

my $one = $of[1][2];

$r = $t->forget("/url/$id{$one}?erase=1&reason=%C3%A4%22");
is($r->{status}, 202, 'DELETE /url/ID?erase=1');
is($r->{headers}{location}, '../erase/1.3', '  where it is');
is_deeply([@{ $r->json }{qw(erasure kind state listed deleted reason)}],
    ['1.3', 'urls', 'done', 1, 1, "\x{e4}\""], '  its erasure');
gone('by its id', $one);
is($t->forget("/url/$id{$of[1][3]}")->{status}, 204, 'a plain DELETE');
$r = $t->forget("/url/$id{$of[1][3]}?erase=1");
is_deeply([$r->{status}, @{ $r->json }{qw(listed deleted)}], [202, 1, 0],
    'an id that was deleted: the URL that it had');
gone('  too', $of[1][3]);


# --- a site, in all shards

my %before = map { $_ => 1 } $t->get('/urls?limit=1000')->{body}
    =~ /^\d+\t(.*)/mg;
my @live = grep { $before{$_} } @{ $site{$host} };

$r = $t->post("/erase?site=www.$host&reason=opt-out");
is($r->{status}, 202, 'a site');
$s = $r->json;
my $of_site = $s->{erasure};
is($r->{headers}{location}, "erase/$of_site", '  where its erasure is');
is_deeply([@$s{qw(kind state listed deleted reason)}],
    ['site', 'done', 3, scalar @live, 'opt-out'], '  all of it');
is(@{ $s->{parts} }, 3, '  by all shards');
gone('  its URLs', @live, "http://$host/never", "https://www.$host/either");
is($t->get('/urls?limit=1000')->{body} =~ tr/\n//, keys(%before) - @live + 1,
    '  and nothing else is gone');


# --- the list

my @rows = grep { !/^#/ } split /\n/, $t->get('/erase',
    Accept => 'text/plain')->{body};

is_deeply([map { (split /\t/)[0] } @rows], [map { $_->[1] }
    sort { $a->[0] <=> $b->[0] || $a->[2] <=> $b->[2] }
    map { [/(.*)\./, $_, /\.(.*)/] } map { (split /\t/)[0] } @rows],
    'GET /erase: shard by shard');
is_deeply([map { $_->{erasure} } @{ $t->get('/erase')->json->{erasures} }],
    [map { (split /\t/)[0] } @rows], '  in JSON');

my (@paged, $cursor);

for (1 .. @rows) {
    $s = $t->get('/erase?limit=2' . ($cursor ? "&cursor=$cursor" : ''))->json;
    push @paged, map { $_->{erasure} } @{ $s->{erasures} };
    $cursor = $s->{cursor};
    last if !$s->{more};
}

is_deeply([sort @paged], [sort map { (split /\t/)[0] } @rows], '  by pages');


# --- lifted

is($t->request(DELETE => "/erase/$name")->{status}, 204, 'lifted');
$s = $t->get("/erase/$name")->json;
is($s->{state}, 'lifted', '  it says so');
is_deeply([map { $_->{state} } @{ $s->{parts} }], [('lifted') x 3],
    '  in all parts');
is($t->request(DELETE => "/erase/$name")->{status}, 204, '  once more');
like($t->post('/add', join('', map { "$_\n" } @some[0, 2, 4], $never), @text)
    ->{body}, qr/\A(?:\d+\tnew\t.*\n){4}\z/, '  its URLs are added again');
gone('  those of others are not', $one);


# --- what is wrong

for (
    [ POST => '/erase', 200, qr/^# erased=0 .* erasure=- /m ],
    [ POST => '/erase?site=a.test&url=http://a/', 400, qr/site.*url/ ],
    [ POST => '/erase?site=a%2Fb', 400, qr/HOST\[:PORT\]/ ],
    [ POST => '/erase?id=1&reason=' . 'x' x 201, 400, qr/at most 200 bytes/ ],
    [ POST => '/erase?id=01', 422, qr/"reason":"json"/ ],
    [ POST => '/erase?cursor=1', 400, qr/cursor/ ],
    [ GET => '/erase?from=1', 400, qr/from/ ],
    [ GET => '/erase?cursor=1', 400, qr/invalid .*cursor/ ],
    [ GET => '/erase/1', 400, qr/names no erasure of a cluster/ ],
    [ GET => '/erase/0.0', 400, qr/names no/ ],
    [ GET => '/erase/0.1_', 400, qr/names no/ ],
    [ GET => '/erase/1.1_0.1', 400, qr/names no/ ],
    [ GET => '/erase/0.1_0.1', 400, qr/names no/ ],
    [ GET => '/erase/0.01', 400, qr/names no/ ],
    [ GET => '/erase/4096.1', 400, qr/names no/ ],
    [ GET => '/erase/0.1_1', 400, qr/names no/ ],
    [ GET => '/erase/' . join('_', map { "0.$_" } 11 .. 19), 400,
        qr/names no/ ],
    [ GET => '/erase/' . join('_', map { "0.$_" } 11 .. 18), 404,
        qr/no erasure/ ],
    [ GET => '/erase/0.99', 404, qr/no erasure 0\.99/ ],
    [ GET => '/erase/0.1_1.99', 404, qr/no erasure 0\.1_1\.99/ ],
    [ GET => '/erase/7.1', 503, qr/no shard 7/ ],
    [ DELETE => '/erase/0.99', 404, qr/no erasure 0\.99/ ],
    [ DELETE => '/url/999999?erase=1', 404, qr/999999 was not given/ ],
    [ DELETE => '/url/3?erase=1&reason=' . 'x' x 201, 400, qr/at most 200/ ],
    [ DELETE => '/url/3?reason=a', 400, qr/without .*erase/ ],
    [ GET => '/url/3?erase=1', 400, qr/is for DELETE/ ],
) {
    my ($method, $path, $status, $like) = @$_;

    $r = $t->request($method, $path);
    is($r->{status}, $status, substr "$method $path", 0, 60);
    like($r->{body}, $like, '  says why');
}


# --- a shard that is away

my $keyed = '"a retry"';
my @batch = (@{ $of[0] }[5, 6], @{ $of[1] }[5, 6], @{ $of[2] }[5, 6]);
my $body = join '', map { "$_\n" } @batch;

ok($c->down(1), 'a shard is down');
$r = $t->post('/erase', $body, @text, 'Idempotency-Key' => $keyed);
is($r->{status}, 202, 'a batch');
my ($part) = $r->{body} =~ / erasure=(\S+) /;
is($r->{body} =~ s/^#.*\n//mr, join('', map { $id{$_} >> 40 == 1
    ? "-\tunavailable\tshard:1\n" : "$id{$_}\terased\t$_\n" } @batch),
    '  all but its URLs');
unlike($part, qr/\b1\./, '  the name has the others');
is($t->post('/erase', "$of[1][5]\n", @text)->{status}, 503, 'its URL alone');
is($t->forget("/url/$id{$of[1][5]}?erase=1")->{status}, 503, '  or its id');

$s = $t->get("/erase/$of_site")->json;
is_deeply([@$s{qw(erasure state done unavailable)}],
    [$of_site, 'unknown', undef, [1]], 'an erasure of which a part is away');
is_deeply($s->{left}, [qw(memory workers files log replicas away)],
    '  it may be anywhere');
is(@{ $s->{parts} }, 2, '  the other parts');
like($t->get("/erase/$of_site", Accept => 'text/plain')->{body},
    qr/\A\Q$of_site\E\tsite\tunknown\t.*^# unavailable=1\n\z/ms, '  as text');
is($t->get('/erase/1.1')->{status}, 503, 'one that is there alone');
$r = $t->post("/erase?site=down.test");
is($r->{status}, 504, 'a site');
is_deeply($r->json->{unavailable}, [1], '  which shard');
$r = $t->request(DELETE => "/erase/$of_site");
is_deeply([$r->{status}, $r->json->{unavailable}], [504, [1]], 'lifting');
$s = $t->get('/erase')->json;
is_deeply([$s->{unavailable}, scalar grep { /^1/ }
    map { $_->{erasure} } @{ $s->{erasures} }], [[1], 0], 'the list');

ok($c->down, 'it is back');
$r = $t->post('/erase', $body, @text, 'Idempotency-Key' => $keyed);
($name) = $r->{body} =~ / erasure=(\S+) /;
is($name =~ s/(?<=_)1\.\d+_//r, $part, 'a retry goes on with the erasure');
is(() = $r->{body} =~ /\terased\t/g, @batch, '  all are erased');
gone('  all of them', @batch);
is($t->post('/erase?site=down.test')->json->{state}, 'done', 'the site');
is($t->request(DELETE => "/erase/$of_site")->{status}, 204, 'it is lifted');
like($t->post('/add', "$live[0]\n", @text)->{body}, qr/\tnew\t/,
    '  its URLs come back');


# --- the command: the parts of all batches are one erasure

my $at = 'http://127.0.0.1:' . $t->port;

sub erase
{
    my ($in, @args) = @_;

    UrlStore::Test::spew($t->dir . '/in', $in);

    my $command = "$UrlStore::Test::TOP/build/urlstore erase @args";

    return scalar(`$command <$t->{dir}/in 2>&1`) . ($? >> 8);
}

$r = erase(join('', map { "$_\n" } @{ $by[2] }[0 .. 999], @{ $by[0] }[0 .. 9],
    @{ $by[2] }[1000 .. 1099]), '--reason', "'by command'", $at);
my ($by_command) = $r =~ /^# erasure=(0\.\d+_2\.\d+)\n0\z/m;
is_deeply([@{ $t->get('/erase/' . ($by_command // '0.1'))->json }
    {qw(listed reason)}],
    [1110, 'by command'], 'urlstore erase');
is(erase("$by[1][0]\nbad url\n", $at) =~ s/1\.\d+/1.N/r,
    "-\terased\t$by[1][0]\n-\tinvalid\tno-base\n# erasure=1.N\n1",
    '  a part');
is(erase('', '--lift', $by_command, $at), 0, '  lifted');
is($t->get("/erase/$by_command")->json->{state}, 'lifted', '  it is');
like(erase('', '--lift', '0.9999', $at), qr/no erasure 0\.9999.*\n1\z/,
    '  none');
like(erase('', '--site', 'many.test', $at),
    qr/\A(0\.\d+)_(1\.\d+)_(2\.\d+)\tsite\tdone\t.*
       \n\1\tsite\t.*\n\2\tsite\t.*\n\3\tsite\t.*\n0\z/x, '  a site');
is(join(' ', erase('', '--list', $at) =~ /^(\d+\.\d+)\t/mg),
    join(' ', $t->get('/erase?limit=5000', Accept => 'text/plain')->{body}
    =~ /^(\d+\.\d+)\t/mg), '  the list');
ok($c->down(2), 'a shard is down');
like(erase('', '--list', $at),
    qr/do not answer: 2\n(?s:.*)^1\.1\t.*\n(?s:.*)\n1\z/m,
    '  the list says so');
like(erase("$by[2][0]\n", '--lift', $by_command, $at), qr/not all shards.*2\z/s,
    '  lifting as well');
ok($c->down, 'it is back');


# --- after a restart

my $list = $t->get('/erase', Accept => 'text/plain')->{body};

$t->stop;
$t->start;
ok(wait_until(20, sub {
    ($t->get('/health?write=1')->json->{status} // '') eq 'ready' }),
    'a restart');
gone('after it', @batch, $one, 'http://down.test/x');
is($t->get('/erase', Accept => 'text/plain')->{body} =~ s/\S*\t\S*$//mgr,
    $list =~ s/\S*\t\S*$//mgr, '  the list is there');
is($t->get("/erase/$name")->json->{state}, 'done', '  and its erasures');
$t->stop;


# --- growth: the owner of today has none of what was erased at a former one

$c = UrlStore::Cluster->new(shards => 3, zone => 'marks=visited',
    slots => [['0-4095', 0]])->run;
$t = $c->t;

# statuses of lines, and their ids by shard

sub statuses
{
    return join ' ', map { my ($id, $status) = split /\t/;
        $status . ($id eq '-' ? '' : ':' . ($id >> 40)) }
        grep { !/^#/ } split /\n/, $_[0];
}

sub add { return statuses($t->post('/add', join('', map { "$_\n" } @_),
    @text)->{body}) }
sub seen { return statuses($t->post('/seen', join('', map { "$_\n" } @_),
    @text)->{body}) }

my @old = map { "http://old.test/$_" } 0 .. 9;

add(@old, 'http://site.test/1');
$t->post('/erase', "$old[0]\n", @text);
ok($c->map(2, ['0-4095', 1, 0]), 'another owner');
is(add($old[0]), 'refused', 'what was erased at the former one');
is(seen($old[0]), 'unseen', '  /seen says unseen');
is($t->post('/mark/visited', "$old[0]\n", @text)->{body},
    "-\tunknown\t$old[0]\n", '  and a mark that there is none');

$r = $t->post('/erase', "$old[1]\n2\nhttp://new.test/\n", @text);
is(statuses($r->{body}), 'erased:0 erased:0 erased', 'erased now');
is_deeply([map { $_->{listed} } @{ $t->get('/erase/0.2_1.1')->json->{parts} }],
    [3, 3], '  both have them on their lists');
is(add(@old[1, 2], 'http://new.test/'), 'refused refused refused',
    '  none comes back');
$r = $t->forget('/url/3?erase=1');
is_deeply([$r->{status}, @{ $r->json }{qw(erasure listed deleted)}],
    [202, '0.3_1.2', 2, 1], 'an id of the former one: by both');
$r = $t->post('/erase?site=site.test');
is_deeply([@{ $r->json }{qw(erasure listed deleted)}], ['0.4_1.3_2.1', 3, 1],
    'a site: by all');
is($t->forget('/erase/2.1')->{status}, 204,
    '  but for a shard that comes later');

ok($c->map(3, ['0-4095', 2, 1, 0]), 'a third owner, which has nothing listed');
is(add(@old[0 .. 3], 'http://new.test/', 'http://site.test/1',
    'http://www.site.test/2'), join(' ', ('refused') x 7),
    '  nothing comes back');
is(add('http://other.test/', $old[4]), 'new:2 seen:0', '  others are added');
$r = $t->post('/add?url=' . uri_escape($old[1]));
is_deeply([$r->{status}, $r->json->{reason}], [422, 'erased'],
    '  a single one');
is($t->post('/add?set=visited&stored=1', "$old[1]\n$old[4]\n", @text)->{body},
    "-\trefused\terased\t-\n4\tnew\t$old[4]\tseen\n", '  with a set');
is(seen(@old[0 .. 4]), 'unseen unseen unseen unseen seen:0', '  /seen');
is(add("http://site.test:81/"), 'new:2', '  another site');
$r = $c->shard(0)->request(POST => '/erase?site=site.test', undef,
    'Urlstore-Map' => join ' ', 'c' x 32, 0, 2, 'd' x 32);
is_deeply([$r->{status}, $r->json->{reason}], [421, 'map'],
    'a site, by a router with an older map: it would leave out a shard');

# one of the former owners is away

ok($c->down(0), 'the first owner is away');
is(add(@old[0, 1, 2], 'http://site.test/1'),
    'unavailable refused refused refused', '  another one refuses');
$r = $t->post('/erase', "$old[5]\nhttp://other.test/\n", @text);
is($r->{status}, 503, '  an erasure needs all');
is(add($old[5]), 'refused', '  which refuse as far as they were asked');

ok($c->down, 'it is back');
is(statuses($t->post('/erase', "$old[5]\n", @text)->{body}), 'erased:0',
    '  the erasure goes on');
is($t->get('/url/5')->{status}, 410, '  and is done');

# lifted, all may come, as URLs of the owner of today

is($t->forget("/erase/$_")->{status}, 204, "lifted $_")
    for '0.1', '0.2_1.1', '0.4_1.3';
is(add(@old[0 .. 3], 'http://site.test/1'), 'new:2 new:2 new:2 refused new:2',
    '  but for what another one refuses');

$t->stop;


# --- what a shard may say

my $row = "1\turls\tdone\t1\t1\t5\t6\t-\tfiles\tr\n";
my %fault = (
    hang => sub { 'hang' },
    close => sub { ${ $_[0] } = ''; 'close' },
    word => sub { ${ $_[0] } =~ s/\terased\t/\tseen\t/; '' },
    other => sub { ${ $_[0] } =~ s/^-\terased/7\terased/m; '' },
    none => sub { ${ $_[0] } =~ s/erasure=\d+/erasure=-/; '' },
    row => sub { ${ $_[0] } =~ s/\turls\t/\tURLs\t/; '' },
);
my $flag;

# answers as a shard does, but with a fault that a file names

sub shard
{
    my ($number, $request, $reply) = @_;

    my $body = $request->{method} eq 'POST'
        ? $request->{target} =~ /site=/ ? $row
            : join('', map { "-\terased\t$_\n" } split /\n/, $request->{body})
                . "# erased=1 erasure=1 next_id=0 epoch=1\n"
        : $request->{target} =~ m{/erase\?} ? "$row# next=2\n"
        : $request->{method} eq 'GET' ? $row : '';

    $$reply = join("\r\n", 'HTTP/1.1 ' . ($body eq '' ? '204 X'
        : $request->{method} eq 'POST' ? '202 X' : '200 X'), 'Urlstore-Map: '
        . 'c' x 32 . " $number 1 " . '0' x 32, $body eq '' ? ()
        : 'Content-Length: ' . length $body, '', '') . $body;

    my $word = $number ? UrlStore::Test::slurp($flag) : '';

    return $word ? $fault{$word}->($reply) : '';
}

$t = UrlStore::Test->new;
$flag = $t->dir . '/fault';

my @fakes = map {
    my $n = $_;
    UrlStore::FakeShard->new($n, sub { shard($n, @_) });
} 0, 1;

sub wrong { UrlStore::Test::spew($flag, $_[0]) }

UrlStore::Test::spew($t->dir . '/map.json', JSON::PP->new->encode({
    cluster => 'c' x 32, version => 1, key => 'url',
    norm => 'crawler/1 unicode=15.0 www=first',
    shards => { map { $_ => { uuid => $_ x 32, nodes => ["f$_"] } } 0, 1 },
    slots => [['0-2047', 0], ['2048-4095', 1]] }));
wrong('');
$t->run("urlstore_cluster c %%DIR%%/map.json;\n"
    . join('', map { "upstream f$_ { server 127.0.0.1:"
        . $fakes[$_]->port . "; }\n" } 0, 1)
    . 'server { listen 127.0.0.1:%%PORT%%;'
    . ' location / { urlstore_route c timeout=500ms; } }');

my ($mine, $theirs) = map {
    my $half = $_;
    (grep { Compress::Zlib::crc32("h$_.test/") >> 31 == $half } 1 .. 99)[0];
} 0, 1;
my @both = map { "http://h$_.test/\n" } $mine, $theirs;

is(rest($t->post('/erase', join('', @both), @text)->{body}),
    join('', map { "-\terased\t$_" } @both)
    . "# erased=2 unknown=0 deleted=0 errors=0 erasure=0.1_1.1\n",
    'two shards');

for (
    [ hang => 'unknown:1' ], [ close => 'unknown:1' ], [ word => 'unknown:1' ],
    [ other => 'unknown:1' ],
) {
    my ($word, $why) = @$_;

    wrong($word);
    $r = $t->post('/erase', join('', @both), @text);
    is(rest($r->{body}), "-\terased\t$both[0]-\tunavailable\t$why\n"
        . "# erased=1 unknown=0 deleted=0 errors=1 erasure=0.1\n",
        "a shard that does wrong: $word");
    is($t->post('/erase', $both[1], @text)->{status}, 504, '  alone');
}

wrong('none');
is($t->post('/erase', $both[1], @text)->{status}, 200, 'no number: no name');

wrong('row');
is($t->get('/erase/1.1')->{status}, 503, 'a row that is none');
is_deeply($t->get('/erase')->json->{unavailable}, [1], '  of the list');
is($t->post('/erase?site=a.test')->{status}, 503, '  of a site');

wrong('hang');
$r = $t->post('/erase?site=a.test');
is_deeply([$r->{status}, $r->json->{unavailable}], [504, [1]],
    'a site, and a shard that hangs');
$r = $t->forget('/erase/0.1_1.1');
is_deeply([$r->{status}, $r->json->{unavailable}], [504, [1]], '  lifting');
is($t->get('/erase/0.1_1.1')->json->{state}, 'unknown', '  and the state');

done_testing;
