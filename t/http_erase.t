#!/usr/bin/perl

# Erasures: what is erased is gone, and refused until the erasure is lifted; by
# ids, URLs and sites, in all formats; what is wrong with a request; after a
# restart, a reload and kills; over a replica; a directory without a server.

use strict;
use warnings;

use lib 't/lib';
use IO::Socket::INET;
use POSIX ();
use UrlStore::Corpora;
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;

my $CONF = <<'CONF';
urlstore_zone u 64m path=%%DIR%%/u marks=visited;
urlstore_zone keep 16m www=keep;
urlstore_zone first 16m schemes=first;
urlstore_zone short 16m;
urlstore_zone synced 16m path=%%DIR%%/synced sync=always;
urlstore_filter f 1m capacity=1000 error=0.01;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /keep/ { urlstore_api keep; }
    location /first/ { urlstore_api first; }
    location /short/ { urlstore_api short; urlstore_max_batch 3; }
    location /synced/ { urlstore_api synced; }
    location /f/ { urlstore_api f; }
    location /only/ { urlstore_erase u; }
    location /quota/ { urlstore_quota $http_x_client 2/h; urlstore_api keep; }
    location = /log { urlstore_log u; }
}
CONF

my $t = UrlStore::Test->new(workers => 2, log => 'notice')->run($CONF);
my @text = ('Content-Type' => 'text/plain');
my @json = ('Content-Type' => 'application/json');
my @ndjson = ('Content-Type' => 'application/x-ndjson');
my ($r, $s);

$t->ready(write => 1, below => $_) for '', '/synced';

my $lines = corpus('reddit_submissions', 2000);
my $added = $t->post('/add?brief=1', join("\n", @$lines), @text)->{body};
my %id;

for (split /\n/, $t->get('/urls?limit=5000')->{body}) {
    my ($id, $url) = split /\t/;
    $id{$url} = $id;
}

my @urls = sort { $id{$a} <=> $id{$b} } keys %id;

cmp_ok(@urls, '>', 1500, 'real URLs');

sub rest { return $_[0] =~ s/ next_id=.*//r }

# of URLs: nothing answers them, and adding them is refused

sub gone
{
    my ($what, @gone) = @_;
    my $body = join "\n", @gone;
    my $n = @gone;

    unlike($t->post('/seen', $body, @text)->{body}, qr/\tseen\t/,
        "$what: unseen");
    is(() = $t->post('/add', $body, @text)->{body} =~ /^-\trefused\terased$/mg,
        $n, '  refused');
}


# --- a batch

my @some = @urls[10, 20, 30];
my $never = 'http://never.example/stored?a=1';

$r = $t->post('/erase?reason=court%20order%207', "$some[0]\n$never\n"
    . "$id{$some[1]}\nno url\n999999\n", @text);
is($r->{status}, 202, 'ids and URLs');
is($r->{headers}{location}, 'erase/1', '  where it is');
is(rest($r->{body}), "$id{$some[0]}\terased\t$some[0]\n-\terased\t$never\n"
    . "$id{$some[1]}\terased\t-\n-\tinvalid\tno-base\n-\tunknown\t-\n"
    . "# erased=3 unknown=1 deleted=0 errors=1 erasure=1\n", '  each');
gone('three URLs', @some[0, 1], $never);
is($t->get("/url/$id{$_}")->{status}, 410, '  its id is gone') for @some[0, 1];
unlike($t->get('/urls?limit=5000')->{body}, qr/^\d+\t\Q$_\E$/m, '  no list')
    for @some[0, 1];
isnt($t->get('/prefix?url=' . uri_escape($some[0]))->json->{url}, $some[0],
    '  nor a prefix');
is($t->post('/add', "$some[2]\n", @text)->{body},
    "$id{$some[2]}\tseen\t$some[2]\n", 'another one is there');

$s = $t->get('/erase/1')->json;
is_deeply([@$s{qw(erasure kind state listed deleted lifted reason)}],
    [1, 'urls', 'done', 3, 2, undef, 'court order 7'], 'GET /erase/1');
cmp_ok(abs($s->{$_} - time), '<', 60, "  $_") for qw(created done);
is($t->get('/erase/1', Accept => 'text/plain')->{body},
    "1\turls\tdone\t3\t2\t$s->{created}\t$s->{done}\t-\t"
    . "memory,workers,files\tcourt order 7\n",
    '  as text');

for ([ 'POST /add?url=', $some[0], 422 ], [ 'POST /add?url=', $some[2], 200 ]) {
    my ($what, $url, $status) = @$_;

    $r = $t->post('/add?url=' . uri_escape($url));
    is($r->{status}, $status, "a single one, $status");
    is($r->json->{reason}, 'erased', '  why') if $status == 422;
    like($r->json->{detail}, qr/was erased/, '  in words') if $status == 422;
}

is_deeply($t->post('/add', qq(["$some[0]","$some[2]"]), @json)
    ->json->{results}[0], { id => undef, status => 'refused',
    reason => 'erased' }, 'JSON');
is($t->post('/add', qq({"url":"$some[0]","ref":[1]}\n), @ndjson)->{body},
    qq({"id":null,"status":"refused","reason":"erased","ref":[1]}\n),
    'NDJSON, with a ref');
like($t->post('/add', 'url=' . uri_escape($some[0]),
    'Content-Type' => 'application/x-www-form-urlencoded')->{body},
    qr/"reason":"erased"/, 'a form');
like($t->post('/add?summary=1', "$some[0]\n$some[2]\n", @text)->{body},
    qr/^# new=0 seen=1 unseen=0 errors=1 /m, 'it counts as an error');
is($t->post('/add?set=crawl', "$some[0]\n", @text)->{status}, 404, 'a set');
$t->request(PUT => '/set/crawl');
is($t->post('/add?set=crawl&stored=1', "$some[0]\n$some[2]\n", @text)->{body},
    "-\trefused\terased\t-\n$id{$some[2]}\tnew\t$some[2]\tseen\n",
    '  is not put into');
is($t->post('/mark/visited', "$some[0]\n", @text)->{body},
    "-\tunknown\t$some[0]\n", '  nor into a mark');

# all other formats of a body

$r = $t->post('/erase', qq(["$urls[40]",$id{$urls[41]}]), @json);
is($r->{status}, 202, 'JSON');
$s = $r->json;
is_deeply($s->{results}, [ { id => $id{$urls[40]}, status => 'erased',
    url => $urls[40] }, { id => $id{$urls[41]}, status => 'erased',
    url => undef } ], '  each');
is_deeply([@$s{qw(erased unknown deleted errors erasure)}], [2, 0, 0, 0, 2],
    '  counts, and its number');
$r = $t->post('/erase', qq({"url":"$urls[42]","ref":7}\n), @ndjson);
is($r->{body} =~ s/,"next_id".*//r, qq({"id":$id{$urls[42]},"status":"erased",)
    . qq("url":"$urls[42]","ref":7}\n{"erased":1,"unknown":0,"deleted":0,)
    . qq("errors":0,"erasure":3\n), 'NDJSON, with a ref');
$r = $t->post('/erase', 'url=' . uri_escape($urls[43]),
    'Content-Type' => 'application/x-www-form-urlencoded');
is_deeply([$r->{status}, @{ $r->json }{qw(id status erasure)}],
    [202, $id{$urls[43]}, 'erased', 4], 'a form: a single one');
$r = $t->post("/erase?id=$id{$urls[44]}");
is_deeply([$r->{status}, @{ $r->json }{qw(id status url erasure)}],
    [202, $id{$urls[44]}, 'erased', undef, 5], 'an id of the query');
$r = $t->post('/erase?base=' . uri_escape($urls[45]) . '&brief=1',
    "x/../../../../no-such-page\n", @text);
like($r->{body}, qr/\A-\terased\n# erased=1 /, 'relative to a base');
gone('of all formats', @urls[40 .. 44]);

is(rest($t->post('/erase', "$id{$urls[40]}\n", @text)->{body}),
    "$id{$urls[40]}\terased\t-\n# erased=1 unknown=0 deleted=0 errors=0 "
    . "erasure=7\n", 'an id that was erased, once more');
is($t->get('/erase/7')->json->{deleted}, 0, '  deletes nothing');

$r = $t->post('/erase', "999999\nno url\n", @text);
is($r->{status}, 200, 'nothing that can be erased');
like($r->{body}, qr/^# erased=0 unknown=1 deleted=0 errors=1 erasure=- /m,
    '  begins no erasure');
is($r->{headers}{location}, undef, '  which would be somewhere');


# --- one id

$r = $t->forget("/url/$id{$urls[50]}?erase=1&reason=%C3%A4%22");
is($r->{status}, 202, 'DELETE /url/ID?erase=1');
is($r->{headers}{location}, '../erase/8', '  where it is');
is_deeply([@{ $r->json }{qw(erasure kind state listed deleted reason)}],
    [8, 'urls', 'done', 1, 1, "\x{e4}\""], '  its erasure');
gone('by its id', $urls[50]);
is($t->forget("/url/$id{$urls[51]}")->{status}, 204, 'a plain DELETE');
like($t->post('/add', "$urls[51]\n", @text)->{body}, qr/\tnew\t/,
    '  lets it come back');
$r = $t->forget("/url/$id{$urls[51]}?erase=1");
is_deeply([$r->{status}, @{ $r->json }{qw(listed deleted)}], [202, 1, 1],
    'an id that was deleted: the URL that it had');
gone('  too', $urls[51]);


# --- sites

my %of;

for (@urls) {
    push @{ $of{ s{^https?://(?:www\.)?([^/?#]+).*}{$1}r } }, $_;
}

my ($host) = sort { @{ $of{$b} } <=> @{ $of{$a} } || $a cmp $b }
    grep { @{ $of{$_} } < 300 && !/:/ } keys %of;
my @site = @{ $of{$host} };
my %before = map { $_ => 1 } $t->get('/urls?limit=5000')->{body}
    =~ /^\d+\t(.*)/mg;
my @live = grep { $before{$_} } @site;

cmp_ok(@live, '>', 5, "a site with some URLs");
$r = $t->post("/erase?site=www.$host&reason=opt-out");
is($r->{status}, 202, '  is erased');
$s = $r->json;
is_deeply([@$s{qw(kind state listed deleted reason)}],
    ['site', 'done', 1, scalar @live, 'opt-out'], '  all of it');
gone('  its URLs', @live);
is($t->post('/add', "http://$host/new\nhttps://www.$host/new\n"
    . "http://$host:8081/new\nhttp://sub.$host/new\n", @text)->{body}
    =~ s/^(?:\d+|-)\t(\w+).*/$1/gmr, "refused\nrefused\nnew\nnew\n",
    '  and those that it never had, but those of others');
is(join(' ', grep { !$before{$_} } $t->get('/urls?limit=5000')->{body}
    =~ /^\d+\t(.*)/mg), "http://$host:8081/new http://sub.$host/new",
    '  nothing else has changed');
is($t->get('/urls?limit=5000')->{body} =~ tr/\n//,
    keys(%before) - @live + 2, '  nor is anything else gone');
is($t->get("/urls?site=$host")->{body}, '', '  no list of it');
my $site = $s->{erasure};

# a site without a URL

$r = $t->post('/erase?site=no-such.example');
is_deeply([$r->{status}, @{ $r->json }{qw(state deleted)}], [202, 'done', 0],
    'a site that is not there');
gone('  neither later', 'http://no-such.example/',
    'https://www.no-such.example/a');


# --- spellings

$t->post('/keep/add', "http://www.a.test/x\nhttp://a.test/x\n"
    . "https://a.test/x\n", @text);
like($t->post('/keep/erase', "http://a.test/x\n", @text)->{body},
    qr/^1\terased/, 'www=keep, schemes=keep');
is($t->post('/keep/add', "http://www.a.test/x\nhttp://a.test/x\n"
    . "https://a.test/x\n", @text)->{body} =~ s/^(?:\d+|-)\t(\w+).*/$1/gmr,
    "seen\nrefused\nseen\n", '  this one only');
$t->post('/keep/erase?site=a.test');
is($t->post('/keep/add', "http://www.a.test/x\nhttp://a.test/y\n"
    . "https://www.a.test/y\n", @text)->{body} =~ s/^(?:\d+|-)\t(\w+).*/$1/gmr,
    "refused\nrefused\nrefused\n", '  its site: with and without www.');
$t->post('/first/add', "http://a.test/x\n", @text);
$t->post('/first/erase', "https://www.a.test/x\n", @text);
like($t->post('/first/add', "http://a.test/x\nhttps://a.test/x\n", @text)
    ->{body}, qr/\A(?:-\trefused\terased\n){2}\z/, 'schemes=first, www=first');


# --- lifted

is($t->request(DELETE => '/erase/1')->{status}, 204, 'lifted');
$s = $t->get('/erase/1')->json;
is($s->{state}, 'lifted', '  it says so');
cmp_ok(abs($s->{lifted} - time), '<', 60, '  and when');
is($t->request(DELETE => '/erase/1')->{status}, 204, '  once more');
$r = $t->post('/add', "$some[0]\n", @text);
like($r->{body}, qr/\A(\d+)\tnew\t\Q$some[0]\E\n/, '  it is added again');
isnt($1, $id{$some[0]}, '  with another id');
is($t->get("/url/$id{$some[0]}")->{status}, 410, '  the old one is gone');
is($t->request(DELETE => "/erase/$site")->{status}, 204, 'a site is lifted');
like($t->post('/add', "$live[0]\n", @text)->{body}, qr/\tnew\t/,
    '  its URLs are added');


# --- what is wrong

for (
    [ POST => '/erase', 200, qr/^# erased=0 .* erasure=- /m ],
    [ POST => '/erase?site=a.test&url=http://a/', 400, qr/site.*url/ ],
    [ POST => '/erase?site=a.test&brief=1', 400, qr/site.*brief/ ],
    [ POST => '/erase?site=a.test', 400, qr/a body/, "http://a/\n" ],
    [ POST => '/erase?site=a%2Fb', 400, qr/HOST\[:PORT\]/ ],
    [ POST => '/erase?site=', 400, qr/site/ ],
    [ POST => '/erase?id=01', 422, qr/"reason":"json"/ ],
    [ POST => '/erase?id=999999', 200, qr/"status":"unknown"/ ],
    [ POST => '/erase?url=no', 422, qr/"reason":"no-base"/ ],
    [ POST => '/erase?id=1&reason=' . 'x' x 201, 400, qr/at most 200 bytes/ ],
    [ POST => '/erase?id=1&reason=a%0Ab', 400, qr/control/ ],
    [ POST => '/erase?id=1&reason=%FF', 400, qr/UTF-8/ ],
    [ POST => '/erase?from=1', 400, qr/from/ ],
    [ POST => '/erase?older=1', 400, qr/older/ ],
    [ GET => '/erase?site=a.test', 400, qr/site/ ],
    [ GET => '/erase?from=0', 400, qr/from/ ],
    [ GET => '/erase?limit=0', 400, qr/limit/ ],
    [ GET => '/erase/0', 400, qr/from 1/ ],
    [ GET => '/erase/x', 400, qr/is no number/ ],
    [ GET => '/erase/999', 404, qr/no erasure 999/ ],
    [ GET => '/erase/99999999999999999999', 404, qr/no erasure/ ],
    [ GET => '/erase/1?from=1', 400, qr/from/ ],
    [ DELETE => '/erase/999', 404, qr/no erasure 999/ ],
    [ DELETE => '/erase/01', 400, qr/is no number/ ],
    [ DELETE => '/erase', 405, qr/allows GET, HEAD, POST/ ],
    [ POST => '/erase/1', 405, qr/allows GET, HEAD, DELETE/ ],
    [ PUT => '/erase/1', 405, qr/GET, HEAD, DELETE/ ],
    [ GET => '/url/3?erase=1', 400, qr/is for DELETE/ ],
    [ DELETE => '/url/3?reason=a', 400, qr/without .*erase/ ],
    [ DELETE => '/url/3?erase=2', 400, qr/erase/ ],
    [ DELETE => '/url/999999?erase=1', 404, qr/999999 was not given/ ],
    [ DELETE => "/url/3?erase=1&reason=" . 'x' x 201, 400, qr/at most 200/ ],
    [ GET => '/f/erase', 404, qr/filter/ ],
    [ POST => '/f/erase?site=a.test', 404, qr/filter/ ],
) {
    my ($method, $path, $status, $like, $body) = @$_;

    $r = $t->request($method, $path, $body, $body ? @text : ());
    is($r->{status}, $status, substr "$method $path", 0, 60);
    like($r->{body}, $like, '  says why');
}

my ($live_id) = $t->get('/urls?limit=1')->{body} =~ /^(\d+)/;

is($t->post("/erase?id=$live_id", '', Origin => 'http://evil.example')
    ->{status}, 403, 'a foreign Origin');
is($t->get("/url/$live_id")->{status}, 200, '  erases nothing');
$r = $t->post('/short/erase', "http://a/\n" x 4, @text);
is($r->{status}, 413, 'too many items');
is($r->json->{processed}, 3, '  what was erased before');
is($r->json->{results}[2]{status}, 'erased', '  it says so');
is($t->get('/short/erase/' . $r->json->{erasure})->json->{state}, 'done',
    '  they are done');
is($t->post('/only/', "http://only.example/\n", @text)->{status}, 202,
    'urlstore_erase');
is($t->get('/only/1')->json->{erasure}, 1, '  and what it says');

# a client that leaves: what it has sent is erased, and a sweep completes it

{
    my $c = $t->client;
    my $before = $t->stats->{erasures};

    $c->begin(POST => '/erase', @text);
    $c->piece("$urls[70]\n$urls[71]\n" . "http://left.example/\n" x 300);
    ok(wait_until(10, sub { $t->stats->{erasures} > $before }), 'it has begun');
    my $n = $t->stats->{erasures};
    is($t->get("/erase/$n")->json->{state}, 'deleting', '  and is not done');
    $c->disconnect;
    ok(wait_until(10, sub {
        $t->get("/erase/$n")->json->{state} eq 'done' }), 'the client leaves');
    gone('  what it has sent', @urls[70, 71]);
}


# --- a key

my @key = ('Idempotency-Key' => '"erase"');
my $many = join "\n", @urls[80 .. 99];

$r = $t->post('/erase', $many, @text, @key);
my ($number) = $r->{body} =~ /erasure=(\d+)/;
is($t->get("/erase/$number")->json->{deleted}, 20, 'with a key');
$r = $t->post('/erase', $many, @text, @key);
like($r->{body}, qr/ erasure=$number /, '  a retry: the same one');
is_deeply([@{ $t->get("/erase/$number")->json }{qw(listed deleted)}], [20, 20],
    '  which has not changed');
$r = $t->post('/erase', $many, @text);
unlike($r->{body}, qr/ erasure=$number /, '  without it: another one');
$r = $t->post('/erase?site=key.example', '', @key, 'X-Client' => 1);
$s = $t->post('/erase?site=key2.example', '', 'Idempotency-Key' => '"2"')->json;
is($t->post('/erase?site=key2.example', '', 'Idempotency-Key' => '"2"')
    ->json->{erasure}, $s->{erasure}, '  of a site');


# --- the list of all

my $last = $t->stats->{erasures};
my $list = $t->get('/erase')->json;

is(scalar @{ $list->{erasures} }, $last, 'GET /erase: all');
is($list->{next}, $last + 1, '  and where it goes on');
is_deeply($list->{erasures}[1], $t->get('/erase/2')->json, '  as each is');
is_deeply([map { $_->{erasure} } @{ $t->get('/erase?from=3&limit=2')->json
    ->{erasures} }], [3, 4], '  a part');
is($t->get('/erase?from=3&limit=2')->json->{next}, 5, '  and the next one');
is($t->get("/erase?from=" . ($last + 1))->{body},
    qq({"erasures":[],"next":@{[$last + 1]}}\n), '  after the last one');
$r = $t->get('/erase?from=2&limit=1&summary=1', Accept => 'text/plain');
like($r->{body}, qr/\A2\turls\tdone\t2\t2\t\d+\t\d+\t-\t[a-z,]+\t\n/,
    '  as text');
like($r->{body}, qr/\n# next=3\n\z/, '  and the next one');
$r = $t->get('/erase?limit=2', Accept => 'application/x-ndjson');
like($r->{body}, qr/\A\{"erasure":1,.*\n\{"erasure":2,.*\n\{"next":3\}\n\z/,
    '  as NDJSON');
is($t->request(HEAD => '/erase/1')->{status}, 200, '  HEAD');


# --- figures, the log

is($t->stats->{erasures}, $last, '/stats: erasures');
cmp_ok($t->stats->{answers}{refused}, '>', 20, '  and refused URLs');
cmp_ok($t->stats->{parts}{erasures}, '>', 0, '  and their memory');
like($t->get('/metrics')->{body},
    qr/^urlstore_answers_total\{zone="u",status="refused"\} [1-9]/m,
    '/metrics');
like($t->get('/metrics')->{body}, qr/^urlstore_erasures\{zone="u"\} $last$/m,
    '  too');

my $log = $t->error_log;

like($log, qr/"u": erasure 1 of URLs was begun: .* reason="court order 7"/,
    'a line of the log');
like($log, qr/"u": erasure 1 of URLs was done: listed=3 deleted=2 /,
    '  when it is done');
like($log, qr/"u": erasure 1 of URLs was lifted: /, '  and lifted');
like($log, qr/"u": erasure $site of a site was done: listed=1 /, '  a site');
unlike($log, qr/\Q$host\E|\Q$some[0]\E/, '  no URL is in it');


# --- all of it after a reload, a restart, kills

my @gone = (@urls[40 .. 44, 50, 51, 80 .. 99], $never);

sub same_erasures
{
    my ($what) = @_;

    $t->ready(write => 1);
    is_deeply($t->get('/erase')->json, $list, "$what: the same erasures");
    gone('  and URLs', @gone[0 .. 25]);
    like($t->post('/add', "$some[0]\n", @text)->{body}, qr/\tseen\t/,
        '  one that was lifted');
}

$list = $t->get('/erase')->json;
$t->reload;
same_erasures('a reload');
$t->stop;
$t->start;
same_erasures('a restart');
$t->allow_kills;
$t->kill_all;
$t->start;
same_erasures('all are killed');

# a worker that is killed in a sweep

$t->post('/add?brief=1', $_, @text) for
    map { my $i = $_; join "\n", map { "http://sweep.example/$_" }
        $i * 10000 + 1 .. $i * 10000 + 10000 } 0 .. 5;
my $deleted = $t->stats->{deleted};

my $child = fork() // die;

if ($child == 0) {
    $t->client->request(POST => '/erase?site=sweep.example');
    POSIX::_exit(0);
}

ok(wait_until(10, sub { ($t->get('/stats')->json // {})->{deleted} > $deleted
    }), 'a sweep has begun');
kill KILL => $t->worker_pids;
waitpid $child, 0;

$t->ready(write => 1);
my $sweep = $t->stats->{erasures};

ok(wait_until(30, sub {
    ($t->get("/erase/$sweep")->json->{state} // '') eq 'done' }),
    '  another worker completes it');
is($t->get("/erase/$sweep")->json->{deleted}, 60000, '  all of it');
is($t->stats->{deleted} - $deleted, 60000, '  and nothing else');
is($t->get('/urls?site=sweep.example')->{body}, '', '  no URL of it is left');

# sync=always

$r = $t->post('/synced/erase', "http://synced.example/\n", @text);
is($r->{status}, 202, 'sync=always');
$t->kill_all;
$t->start;
$t->ready(write => 1, below => '/synced');
like($t->post('/synced/add', "http://synced.example/\n", @text)->{body},
    qr/refused/, '  it is durable when it is answered');


# --- no target is passed over

$t->ready(write => 1);
$r = $t->post("/erase?id=$id{$some[2]}&url=" . uri_escape($some[2]));
is($r->{status}, 400, 'an id and a URL');
like($r->json->{detail}, qr/"url" and "id"/, '  what is wrong');


# --- a worker that ends in a sweep, and waits for its connections

my $ends = UrlStore::Test->new(workers => 1)->run(<<'CONF');
urlstore_zone u 64m path=%%DIR%%/u;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

$ends->ready(write => 1);
$ends->post('/add?brief=1', $_, @text) for
    map { my $i = $_; join "\n", map { "http://ends.example/$_" }
        $i * 10000 + 1 .. $i * 10000 + 10000 } 0 .. 9;

my $slow = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
    PeerPort => $ends->port) // die "cannot connect: $!\n";

print $slow "POST /seen HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nh";
$slow->flush;
$child = fork() // die;

if ($child == 0) {
    delete $ends->{client};
    $ends->client->request(POST => '/erase?site=ends.example');
    POSIX::_exit(0);
}

my @old = $ends->worker_pids;

ok(wait_until(10, sub { ($ends->get('/stats')->json // {})->{deleted} }),
    'a sweep has begun');
kill STOP => @old;
delete $ends->{client};
kill HUP => $ends->{pid};
ok(wait_until(20, sub { $ends->worker_pids == 2 }), '  its worker is to end');
sleep 1;                             # it is told a while later
kill CONT => @old;

ok(wait_until(5, sub { ($ends->get('/erase/1')->json->{state} // '')
    eq 'done' }), '  another one completes it');
is($ends->stats->{deleted}, 100000, '  all of it');
is(kill(0, @old), 1, '  while that one is there');
close $slow;
waitpid $child, 0;


# --- a replica, and what becomes of it

$t->ready(write => 1);

my $replica = UrlStore::Test->new->run(<<CONF);
urlstore_zone u 64m follow=http://127.0.0.1:@{[$t->port]}/ path=%%DIR%%/u;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

# the primary waits for its replicas, too, as soon as it knows one

sub erasures
{
    my $e = $_[0]->get('/erase');
    my $all = $e->{status} == 200 ? $e->json : { erasures => [] };

    $_->{left} = [ grep { $_ ne 'replicas' } @{ $_->{left} } ]
        for @{ $all->{erasures} };
    return $all;
}

my $all = erasures($t);

ok(wait_until(20, sub { @{ erasures($replica)->{erasures} }
    == @{ $all->{erasures} } }), 'a replica');
is_deeply(erasures($replica), $all, '  the same list');
is($replica->post('/erase?site=a.test')->{status}, 421, '  erases nothing');
is($replica->request(DELETE => '/erase/1')->{status}, 421, '  nor lifts');
ok(wait_until(20, sub { $replica->stats->{durable} // 0 }), '  has a copy');

my $next = $t->post('/erase', "http://last.example/\n", @text);
my ($n) = $next->{body} =~ /erasure=(\d+)/;

ok(wait_until(20, sub { ($replica->get("/erase/$n")->json->{state} // '')
    eq 'done' }), '  the last one has come');
sleep 2;                             # what is not synced is not in its copy
$replica->stop;

is(system("$top/build/urlstore", 'restore', $replica->dir . '/u'), 0,
    'the copy becomes a store');

system('chown', '-R', 'nobody:nogroup', $replica->dir . '/u') if $> == 0;

my $heir = UrlStore::Test->new->run(<<CONF);
urlstore_zone u 64m path=@{[$replica->dir]}/u marks=visited;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

$heir->ready(write => 1);
is(() = $heir->post('/add', join("\n", @gone[0 .. 25], 'http://last.example/'),
    @text)->{body} =~ /^-\trefused\terased$/mg, 27, '  it refuses the same');


# --- the command: a service, and a directory without one

sub erase
{
    my ($in, @args) = @_;
    my $dir = $replica->dir;

    spew("$dir/in", $in);
    return scalar(`$top/build/urlstore erase @args < $dir/in 2>&1`) . ($? >> 8);
}

my $at = 'http://127.0.0.1:' . $heir->port;

$heir->post('/add', join("\n", map { "http://command.example/$_" } 1 .. 2500),
    @text);
my ($first) = $heir->post('/seen', "http://command.example/1\n", @text)
    ->{body} =~ /^(\d+)/;
my $out = erase(join("\n", $first, map { "http://command.example/$_" }
    2 .. 2400), "--reason 'order 8'", $at);

like($out, qr/\A$first\terased\t-\n@{[$first + 1]}\terased\thttp:\/\/comm/,
    'urlstore erase: ids and URLs of a service');
my ($of) = $out =~ /^# erasure=(\d+)\n0\z/m;
is_deeply([@{ $heir->get("/erase/$of")->json }{qw(listed deleted reason)}],
    [2400, 2400, 'order 8'], '  more than one batch, one erasure');
is(erase("bad url\n999999\n", $at), "-\tinvalid\tno-base\n-\tunknown\t-\n1",
    '  what cannot be erased');
like(erase('', '--site', 'command.example', $at),
    qr/\A\d+\tsite\tdone\t1\t100\t.*\t\n0\z/, '  a site');
is(erase('', '--list', $at), $heir->get('/erase',
    Accept => 'text/plain')->{body} . 0, '  a list');
is(erase('', '--lift', $of, $at), 0, '  lifted');
is($heir->get("/erase/$of")->json->{state}, 'lifted', '  it is');
like(erase('', '--lift', 9999, $at), qr/no erasure 9999.*\n1\z/, '  none');
like(erase('', $heir->dir . '/none'), qr/No such file.*\n2\z/,
    '  no directory is made');
like(erase('', @$_, 'x'), qr/2\z/, "  wrong: @$_") for ['--list', '--lift 1'],
    ['--site a --lift 1'], ['--lift 01'], ["--reason 'a\tb'"], ['--bad'];

my $store = $replica->dir . '/u';

like(erase('', $store), qr/owned by another process.*\n2\z/,
    'a directory with an owner');
$heir->stop;

my @left = @urls[200 .. 240];
my @before = (glob("$store/journal.*"), glob("$store/snapshot.*"));

like(erase(join("\n", $id{$left[0]}, @left[1 .. 30],
    'http://never-there.example/'), $store),
    qr/\A$id{$left[0]}\terased\t$id{$left[0]}\n.*\n-\terased\thttp:\/\/never/s,
    'a directory: ids and URLs');
like(erase('', '--site', 'command.example', $store),
    qr/\A\d+\tsite\tdone\t1\t0\t/, '  a site');
like(erase('', '--list', $store), qr/^\d+\turls\tdone\t32\t\d+\t/m, '  a list');

is(scalar(grep { -e } @before), 0, '  no file of before is left');
is(system("$top/build/urlstore verify $store > /dev/null"), 0, '  verified');
system('chown', '-R', 'nobody:nogroup', $store) if $> == 0;
$heir->start;
$heir->ready(write => 1);
is(() = $heir->post('/add', join("\n", @left[1 .. 30],
    'http://never-there.example/'), @text)->{body} =~ /^-\trefused\terased$/mg,
    31, '  a server refuses them');
like($heir->post('/seen', $left[35], @text)->{body}, qr/\tseen\t/,
    '  and has the others');
