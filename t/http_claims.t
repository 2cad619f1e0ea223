#!/usr/bin/perl

# Claims: /add?older=, /seen?older=, /claim, /urls?older=, times=1; the zone's
# revisit=; their figures.  The server's clock is set by the test.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

need_fault_clock();

my $t = UrlStore::Test->new(clock => 1)->run(<<'CONF');
urlstore_zone u 64m revisit=1h marks=visited sites=on;
urlstore_zone d 16m revisit=60 path=%%DIR%%/d;
urlstore_zone none 16m;
urlstore_zone e 16m path=%%DIR%%/e;
urlstore_filter f 1m capacity=1000 error=0.01;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /d/ { urlstore_api d; }
    location /none/ { urlstore_api none; }
    location /e/ { urlstore_api e; }
    location /f/ { urlstore_api f; }
    location = /mine { urlstore_claim u; }
}
CONF

my @text = ('Content-Type' => 'text/plain');
my @json = ('Content-Type' => 'application/json');
my @ndjson = ('Content-Type' => 'application/x-ndjson');
my $hour = 3600;
my $ahead = 0;
my ($r, $s);

ok(wait_until(10, sub { $t->get('/d/health')->{status} == 200 }), 'ready');

# the clock stands at the beginning of an hour, plus some

sub at_hour { $t->clock($ahead = $_[0] * $hour + (5 - time() % $hour)) }

# a claim is dated by its hour, in seconds since 1970

my $zero = int(time() / $hour) * $hour;

at_hour(0);
select undef, undef, undef, .1;

# --- /add

is($t->post('/add?older=2h', "http://a.com/\nhttp://b.com/\n", @text)->{body},
    "0\tnew\thttp://a.com/\n1\tnew\thttp://b.com/\n", 'new');
is($t->post('/add?older=2h', "http://a.com/\nhttp://b.com/\n", @text)->{body},
    "0\tseen\thttp://a.com/\n1\tseen\thttp://b.com/\n", 'claimed by the add');

at_hour(2);
is($t->get('/seen?url=http://a.com/&older=2h')->json->{status}, 'seen',
    'not due before 2 hours have passed');
is($t->get('/seen?url=http://a.com/&older=1h')->json->{status}, 'due', 'due');

at_hour(3);
is($t->get('/seen?url=http://a.com/&older=2h')->json->{status}, 'due',
    'due when 3 have');
is($t->get('/seen?url=http://a.com/&older=2h')->json->{status}, 'due',
    'a look claims nothing');
is($t->post('/add', "http://a.com/\n", @text)->{body},
    "0\tseen\thttp://a.com/\n", 'without older= a known URL is seen');

$r = $t->post('/add?older=2h&times=1&summary=1&sites=1', join("\n",
    'http://a.com/', 'http://c.com/', 'http://a.com/', 'ftp://x/'), @text);
is($r->{body}, "0\tdue\thttp://a.com/\tsite-known\t$zero\n"
    . "2\tnew\thttp://c.com/\tsite-new\t-\n"
    . "0\tseen\thttp://a.com/\tsite-known\t" . ($zero + 3 * $hour) . "\n"
    . "-\tinvalid\tscheme\t-\t-\n"
    . "# new=1 seen=1 unseen=0 due=1 errors=1 next_id=2 epoch="
    . $t->get('/health')->json->{epoch} . "\n", 'text, with all columns');

$r = $t->post('/add?older=2h&only=new&times=1', '["http://a.com/",'
    . '"http://b.com/","http://e.com/"]', @json)->json;
is_deeply($r->{results}, [
    { id => 1, status => 'due', url => 'http://b.com/', index => 1,
      time => $zero },
    { id => 3, status => 'new', url => 'http://e.com/', index => 2,
      time => undef } ], 'only=new: new and due ones');
is_deeply([ @$r{qw(new seen due unseen errors)} ], [ 1, 1, 1, 0, 0 ],
    'the summary counts them');

at_hour(10);
$r = $t->post('/add?older=2h', qq({"url":"http://b.com/","ref":7}\n), @ndjson);
is_deeply(json((split /\n/, $r->{body})[0]), { id => 1, status => 'due',
    url => 'http://b.com/', ref => 7 }, 'NDJSON');
$r = $t->post('/add?older=2h&url=http://a.com/', '');
is($r->{status}, 200, 'a single URL that is due: 200');
is($r->json->{status}, 'due', 'and its status');
is($t->post('/add?older=2h&brief=1', "http://a.com/\nhttp://c.com/\n", @text)
    ->{body}, "0\tseen\n2\tdue\n", 'brief');

# --- a clock that goes back

at_hour(4);
is($t->post('/add?older=2h&times=1', "http://e.com/\nhttp://c.com/\n", @text)
    ->{body}, "3\tdue\thttp://e.com/\t" . ($zero + 3 * $hour)
    . "\n2\tseen\thttp://c.com/\t" . ($zero + 10 * $hour) . "\n",
    'ages stay what they were');
is($t->get('/url/3?times=1')->{body}, "http://e.com/\t" . ($zero + 10 * $hour)
    . "\n", 'a claim is dated by the latest time that was');
at_hour(10);

# --- times=1 elsewhere

$r = $t->get('/url/3?times=1', Accept => 'application/json');
is_deeply($r->json, { id => 3, url => 'http://e.com/',
    time => $zero + 10 * $hour }, '/url: JSON');
is($r->{headers}{'cache-control'}, 'no-store', 'not for caches');
ok(!exists $r->{headers}{etag}, 'no ETag');
is($t->get('/url/0,1?times=1')->{body},
    join('', map { "$_->[0]\thttp://$_->[1].com/\t" . ($zero + 10 * $hour)
        . "\n" } [ 0, 'a' ], [ 1, 'b' ]), '/url of many: text');
is_deeply($t->post('/url?times=1', '[3,9]', @json)->json->{results}, [
    { id => 3, url => 'http://e.com/', status => 'ok',
      time => $zero + 10 * $hour },
    { id => 9, url => undef, status => 'unknown' } ], '/url of many: JSON');
is($t->get('/urls?from=3&times=1')->{body}, "3\thttp://e.com/\t"
    . ($zero + 10 * $hour) . "\n", '/urls: text');
is($t->get('/urls?from=3&times=1', Accept => 'application/x-ndjson')->{body},
    qq({"id":3,"url":"http://e.com/","time":) . ($zero + 10 * $hour)
    . qq(}\n{"next":4}\n), '/urls: NDJSON');
is($t->get('/seen?url=http://e.com/&times=1')->json->{time},
    $zero + 10 * $hour, '/seen');
ok(!exists $t->get('/seen?url=http://x.com/&times=1')->json->{time},
    'none of an unseen URL');
is($t->post('/seen?times=1', "http://x.com/\n", @text)->{body},
    "-\tunseen\thttp://x.com/\t-\n", 'nor in text');

# --- /claim

at_hour(20);
$r = $t->post('/claim', "0\nhttp://b.com/\n99\nhttp://x.com/\n01\n", @text);
like($r->{body}, qr{^0\tclaimed\thttp://a\.com/
1\tclaimed\thttp://b\.com/
-\tunknown\t-
-\tunknown\thttp://x\.com/
-\tinvalid\t}, 'ids and URLs');
is($t->post('/add?older=2h', "http://a.com/\nhttp://b.com/\nhttp://c.com/\n",
    @text)->{body}, "0\tseen\thttp://a.com/\n1\tseen\thttp://b.com/\n"
    . "2\tdue\thttp://c.com/\n", 'are claimed');

$r = $t->post('/claim?clear=1&summary=1', '[0,"http://b.com/"]', @json)->json;
is_deeply($r->{results}, [
    { id => 0, status => 'claimed', url => 'http://a.com/' },
    { id => 1, status => 'claimed', url => 'http://b.com/' } ],
    'clear=1 gives them back');
is_deeply([ @$r{qw(claimed unknown deleted errors)} ], [ 2, 0, 0, 0 ],
    'the summary');
is($t->post('/add?older=65000h', "http://a.com/\n", @text)->{body},
    "0\tdue\thttp://a.com/\n", 'they are due at once');

$s = $zero + 12 * $hour + 77;
is($t->post("/claim?at=$s&id=1", '')->json->{status}, 'claimed', 'at=SECONDS');
is($t->get('/url/1?times=1')->{body}, "http://b.com/\t"
    . ($zero + 12 * $hour) . "\n", 'the time of its unit');

my @gm = gmtime($zero + 15 * $hour);
my $rfc = sprintf '%04d-%02d-%02dT%02d:30:00Z', $gm[5] + 1900, $gm[4] + 1,
    @gm[3, 2];
$t->post("/claim?at=$rfc", qq({"url":"http://b.com/"}\n), @ndjson);
is($t->get('/url/1?times=1')->{body}, "http://b.com/\t"
    . ($zero + 15 * $hour) . "\n", 'at=RFC 3339');
$t->post('/claim?at=' . ($zero + 999 * $hour), '1', @text);
is($t->get('/url/1?times=1')->{body}, "http://b.com/\t"
    . ($zero + 20 * $hour) . "\n", 'a time to come is now');
$t->post('/claim?at=1970-01-02T00:00:00Z', '1', @text);
is($t->get('/url/1?times=1')->{body}, "http://b.com/\t86400\n", 'long ago');
is($t->post('/mine', '2', @text)->{body}, "2\tclaimed\thttp://c.com/\n",
    'urlstore_claim');

$t->forget('/url/2');
is($t->post('/claim', "2\nhttp://c.com/\n", @text)->{body},
    "2\tdeleted\t-\n-\tunknown\thttp://c.com/\n", 'deleted');
is($t->request('GET', '/claim')->{status}, 405, 'GET of /claim: 405');

# --- /urls?older=

$t->post('/add', join("\n", map { "http://d.com/$_" } 1 .. 3000), @text);
at_hour(30);
$t->post('/claim', join("\n", grep { $_ % 500 } 4 .. 3003), @text);
is($t->get('/urls?older=3h')->{body}, "0\thttp://a.com/\n1\thttp://b.com/\n"
    . "3\thttp://e.com/\n"
    . join('', map { "$_\thttp://d.com/" . ($_ - 4 + 1) . "\n" }
        500, 1000, 1500, 2000, 2500, 3000), 'what is due, without the deleted');
is($t->get('/urls?older=3h&limit=2&summary=1')->{body},
    "0\thttp://a.com/\n1\thttp://b.com/\n# next=3\n", 'limit');
is($t->get('/urls?older=3h&from=1001&limit=1&summary=1')->{body},
    "1500\thttp://d.com/1497\n# next=2000\n", 'from');
is($t->get('/urls?older=3h&from=3001&summary=1')->{body}, "# next=3004\n",
    'none, to the end');
is($t->get('/urls?older=3h&from=9999&summary=1')->{body}, "# next=9999\n",
    'past the end');
is($t->get('/urls?older=3h&site=d.com&limit=1')->{body},
    "500\thttp://d.com/497\n", 'of a site');
$t->post('/mark/visited', '1500', @text);
is($t->get('/urls?older=3h&mark=visited')->{body}, "1500\thttp://d.com/1497\n",
    'with a mark');
is_deeply($t->get('/urls?older=3h&limit=1&times=1',
    Accept => 'application/json')->json, { results => [ { id => 0,
    url => 'http://a.com/', time => $zero + 20 * $hour } ], next => 1 },
    'JSON');

# --- what is refused

for ([ '2', 'shorter than a unit' ], [ '59m', 'shorter than a unit' ],
    [ '65001h', 'longer than claims are kept' ], [ '1x', 'no duration' ],
    [ '-1h', 'negative' ], [ '1.5h', 'a fraction' ], [ '1h1d', 'order' ],
    [ '99999999999999999999h', 'too large' ])
{
    my ($older, $why) = @$_;

    for my $path ('/add', '/seen', '/urls') {
        $r = $path eq '/urls' ? $t->get("$path?older=$older")
            : $t->post("$path?older=$older", "http://a.com/\n", @text);
        is($r->{status}, 400, "$path?older=$older: $why");
        like($r->json->{detail}, qr/"older"[ ]value[ ]"\Q$older\E";
            [ ]use[ ]a[ ]duration[ ]from[ ]1h[ ]to[ ]65000h/x,
            'what is allowed');
    }
}

for my $at ('yesterday', '-5', '2026-02-30T00:00:00Z', '1e9') {
    $r = $t->post("/claim?at=$at", '1', @text);
    is($r->{status}, 400, "at=$at");
    like($r->json->{detail}, qr/"at" value "\Q$at\E"; use seconds since 1970/,
        'what is allowed');
}

is($t->post('/claim?at=5&clear=1', '1', @text)->{status}, 400,
    'at= and clear=1');
like($t->post('/claim?older=1h', '1', @text)->json->{detail},
    qr/unknown query argument "older"/, '/claim has no older=');

for ([ 'POST', '/none/add?older=1h' ], [ 'POST', '/none/seen?times=1' ],
    [ 'GET', '/none/urls?older=1d' ], [ 'GET', '/none/url/0?times=1' ],
    [ 'POST', '/none/claim' ])
{
    $r = $t->request($_->[0], $_->[1],
        $_->[0] eq 'POST' ? "http://a.com/\n" : undef, @text);
    is($r->{status}, 400, "$_->[1] of a zone without claims");
    like($r->json->{detail}, qr/keeps no claims \(revisit=UNIT/, 'and why');
}

for ('add?older=1h', 'seen?older=1h', 'add?times=1') {
    $r = $t->post("/f/$_", "http://a.com/\n", @text);
    is($r->{status}, 400, "/$_ of a filter");
    like($r->json->{detail}, qr/a filter keeps no claims/, 'and why');
}

is($t->post('/f/claim', '1', @text)->{status}, 404, 'a filter has no /claim');

# --- figures

$s = $t->get('/stats')->json;
is($s->{revisit}, $hour, '/stats: revisit');
is($s->{clock}, $zero + 30 * $hour, '/stats: the clock of claims');
cmp_ok($s->{answers}{due}, '>', 5, '/stats: answers');
cmp_ok($s->{claims}, '>', 3000, '/stats: claims');
cmp_ok($s->{parts}{claims}, '>', 0, '/stats: parts');
$r = $t->get('/metrics')->{body};
like($r, qr/^urlstore_answers_total\{zone="u",status="due"\}
    [ ]$s->{answers}{due}$/mx, '/metrics: due');
like($r, qr/^urlstore_claims_total\{zone="u"\} $s->{claims}$/m,
    '/metrics: claims');
is($t->get('/none/stats')->json->{revisit}, 0, 'no claims');
is($t->get('/none/stats')->json->{parts}{claims}, 0, 'no bytes for them');

# --- on disk: they survive kills, and units of a minute

my $minute = int((time() + $ahead) / 60) * 60;

$t->post('/d/add?older=5m', "http://a.com/\nhttp://b.com/\n", @text);
$t->clock($ahead += 600);
$r = $t->post('/d/add?older=5m&times=1', "http://b.com/\n", @text)->{body};
like($r, qr/^1\tdue\thttp:\/\/b.com\/\t\d+$/, 'a unit of a minute');
$t->kill_all;
$t->start;
ok(wait_until(10, sub { $t->get('/d/health')->{status} == 200 }), 'killed');
$t->post('/d/add', "http://gone.com/\n", @text);
is($t->forget('/d/url/2')->{status}, 204, 'one that is deleted');
like($t->get('/d/urls?deleted=1&times=1')->{body},
    qr{^0\t\S+\t\d+\n1\t\S+\t\d+\n2\t-\t-\n$}, '  has three columns, too');
is($t->post('/d/add?older=5m&only=new', "http://b.com/\nhttp://a.com/\n",
    @text)->{body}, "0\tdue\thttp://a.com/\t1\n", 'claims survive it');

# --- one reading of a clock that is far ahead

my $days = 400 * 86400;

is($t->get('/d/stats')->json->{clock_ahead}, 0, 'no clock is ahead');
$t->clock($ahead += $days);
$t->post('/d/add?older=5m', "http://a.com/\n", @text);
ok(wait_until(5, sub {
    grep { abs($_ - $days) < 120 } $t->error_log
        =~ /\[warn\].*"d": the time of day has jumped by (\d+)/g
}), 'a jump is logged');
is($t->get('/d/stats')->json->{clock_ahead}, 0, 'both are ahead');
$t->clock($ahead -= $days);
ok(wait_until(5, sub {
    grep { abs($_ - $days) < 120 } $t->error_log
        =~ /\[warn\].*"d": its clock of claims is (\d+) seconds/g
}), 'that no claim gets older is logged, without any request');
my $stands = $t->get('/d/stats')->json->{clock_ahead};
cmp_ok(abs($stands - $days), '<', 120, '/stats: by how much');
like($t->get('/d/metrics')->{body},
    qr/^urlstore_clock_ahead_seconds\{zone="d"\} (\d+)$/m, '/metrics, too');
sleep 2;
my @lines = grep { abs($_ - $days) < 120 } $t->error_log
    =~ /"d": its clock of claims is (\d+)/g;
is(scalar @lines, 1, 'one line for all workers');

# --- revisit= of the configuration

sub conf
{
    my ($u, $d) = @_;

    return <<"CONF";
urlstore_zone u 64m $u marks=visited sites=on;
urlstore_zone d 16m $d path=%%DIR%%/d;
urlstore_zone none 16m $_[2];
urlstore_zone e 16m path=%%DIR%%/e $_[2];
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /d/ { urlstore_api d; }
    location /none/ { urlstore_api none; }
    location /e/ { urlstore_api e; }
}
CONF
}

ok(wait_until(10, sub { $t->get('/e/health')->{status} == 200 }), 'ready');
$t->post('/e/add', "http://a.com/\n", @text);

for my $bad ('59s', '25h', '0', 'x', '') {
    my ($rc, $out) = $t->check(conf("revisit=$bad", 'revisit=1m', ''));

    is($rc, 1, "revisit=$bad is refused");
    like($out, qr/"revisit".*from 1m to 1d/, 'with what is allowed');
}

ok($t->reload(conf('revisit=60m', 'revisit=1m', 'revisit=1d')),
    'the same unit in other words, and claims added to a zone');
is($t->post('/none/add', "http://a.com/\n", @text)->{status}, 200, 'an add');
is($t->post('/none/add?older=2d', "http://a.com/\n", @text)->{body},
    "0\tseen\thttp://a.com/\n", 'which is claimed');

ok(wait_until(10, sub {
    $r = $t->post('/e/add?older=2d', "http://a.com/\n", @text);

    return $r->{status} == 200 ? 1
        : $r->{status} == 503 && $r->{headers}{'retry-after'} ? 0 : die;
}), 'and to a directory, when the manifest has them');
is($r->{body}, "0\tdue\thttp://a.com/\n", 'all are due');

for ([ '', 'revisit=1m', 'revisit=1d', 'removed from a zone in memory' ],
    [ 'revisit=2h', 'revisit=1m', 'revisit=1d', 'another unit' ],
    [ 'revisit=1h', '', 'revisit=1d', 'removed from one on disk' ])
{
    my $text = pop @$_;
    my $from = length $t->error_log;

    ok(!$t->reload(conf(@$_)), $text);
    like(substr($t->error_log, $from),
        qr/\[emerg\].*its "revisit" cannot change while nginx runs/, 'why');
    is($t->get('/stats')->json->{revisit}, $hour, 'the old one stays');
}

$t->allow(qr/its "revisit" cannot change/);

# nor at a start; the manifest has it

$t->stop;

my ($rc, $out) = $t->check(conf('', '', ''));

is($rc, 1, 'a directory with claims and a configuration without');
like($out, qr/stored with revisit "60s", not with "0s"/, 'why');
$t->allow(qr/stored with revisit/);

my $manifest = slurp($t->dir . '/d/manifest');

like($manifest, qr/^urlstore data 7\n/, 'the manifest is of version 7');
like($manifest, qr/^store revisit 60$/m, 'and names the unit');

# --- the command: what a directory has, and another with another unit

my $urlstore = "$UrlStore::Test::TOP/build/urlstore";
my $d = $t->dir;

sub command { my $out = `$urlstore $_[0] 2>&1`; return ($? >> 8) . "\n$out" }

my $dump = command("dump --times $d/d");

like($dump, qr{^0\n0\thttp://a\.com/\t\d+\n1\thttp://b\.com/\t\d+\n$},
    'dump --times');
like(command("dump --times --deleted $d/d"), qr{\t\d+\n2\t-\t-\n$},
    '  three columns of deleted ones, too');
spew("$d/lines", "7\thttp://a.com/\t" . time() . "\n8\thttp://b.com/\t-\n"
    . "9\thttp://c.com/\n");
like(command("import --revisit 2m $d/new $d/lines"), qr/^0\n.* 3 new,/,
    'import with times');
like(command("dump -t $d/new"), qr{^0\n0\thttp://a\.com/\t\d+
1\thttp://b\.com/\t-\n2\thttp://c\.com/\t\d+\n$}, 'keeps them');
is(command("add --older 1h $d/new $d/urls") =~ s/^0\n//r,
    "0\tseen\thttp://a.com/\n1\tdue\thttp://b.com/\n", 'add --older')
    if spew("$d/urls", "http://a.com/\nhttp://b.com/\n");
is(command("seen -o 1h $d/new $d/urls"), "0\n0\tseen\thttp://a.com/\n"
    . "1\tseen\thttp://b.com/\n", 'seen --older: that has claimed it');
like(command("seen -o 1m $d/new $d/urls"),
    qr/^2\n.*"1m"; use a duration from 2m to 130000m/, 'what is allowed');
like(command("seen -o x $d/new $d/urls"), qr/^2\n.*"x"; use a duration such/,
    'no duration');
like(command("import --revisit 1h $d/new $d/urls"),
    qr/^2\n.*stored with revisit "120s", not with "3600s"/, 'another unit');
like(command("import --revisit 1s $d/x $d/urls"), qr/^2\n.*from 1m to 1d/,
    'a unit that is none');
command("backup $d/new $d/copy");
like(command("dump -t $d/copy"), qr{\thttp://b\.com/\t\d+\n}, 'a backup');
command("restore $d/copy $d/again");
like(slurp("$d/again/manifest"), qr/^store revisit 120$/m, 'and a restore');
