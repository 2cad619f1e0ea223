#!/usr/bin/perl

# Idempotency-Key: what was new or due to a request is so to its retry, from
# any worker, in all formats, whatever the client or a worker did in between;
# once of equal URLs, and to no other key.  A router (US_ROUTE) passes the key
# on to its shards: their figures count, and its quota charges each try.

use strict;
use warnings;

use lib 't/lib';
use IO::Compress::Gzip ();
use MIME::Base64 qw(encode_base64);
use POSIX ();
use Time::HiRes qw(sleep time);
use UrlStore::Test;

my $MAIN = <<'CONF';
urlstore_zone u 64m marks=done;
urlstore_zone v 16m revisit=1m;
urlstore_filter f 1m capacity=100000 error=0.001;
add_header X-Pid $pid always;
urlstore_max_batch 200000;
client_max_body_size 16m;
server {
    listen 127.0.0.1:%%PORT%%;
    urlstore_allow_origin https://ui.example;
    location / { urlstore_api u; }
    location /v/ { urlstore_api v; }
    location /f/ { urlstore_api f; }
    location /quota/ {
        urlstore_quota $http_x_client 1/h burst=4;
        urlstore_api u;
    }
    location /users/ {
        auth_basic users;
        auth_basic_user_file %%DIR%%/users;
        urlstore_api u;
    }
}
CONF

my $t = UrlStore::Test->new;

spew($t->dir . '/users', "ann:{PLAIN}a\nbob:{PLAIN}b\n");
$t->run($MAIN);

my ($n, $k) = (0, 0);
my $ndjson = 'application/x-ndjson';
my $json = 'application/json';
my ($r, $again, $url);


# --- every form of a request

my @forms = (
    [ 'text', sub { [ '/add', "$_[0]\n$_[0]/b\n$_[0]\n" ] } ],
    [ 'text, brief', sub { [ '/add?brief=1', "$_[0]\n" ] } ],
    [ 'text, all options', sub {
        [ '/add?summary=1&sites=1&only=new', "$_[0]\nbad:\n" ] } ],
    [ 'an array', sub { [ '/add', qq(["$_[0]","x:"]), $json ] } ],
    [ 'an object', sub { [ '/add', qq({"url":"$_[0]"}), $json ] } ],
    [ 'sites', sub { [ '/add?sites=1', qq({"url":"http://s$n.example/"}),
        $json ] } ],
    [ 'NDJSON', sub { [ '/add', qq({"url":"$_[0]","ref":[1]}\n), $ndjson ] } ],
    [ 'a form', sub { [ '/add', 'url=' . uri_escape($_[0]),
        'application/x-www-form-urlencoded' ] } ],
    [ 'a query', sub { [ '/add?url=' . uri_escape($_[0]), '' ] } ],
    [ 'JSON of text', sub { [ '/add', "$_[0]\n", undef, Accept => $json ] } ],
);

is($t->post('/add', "http://site.example/\n")->{status}, 200, 'a URL');

for (@forms) {
    my ($what, $make) = @$_;
    my $key = key();
    my ($path, $body, $type, @h) = @{ $make->(url()) };

    push @h, 'Content-Type' => $type if $type;

    my $first = $t->post($path, $body, @h, key($key));
    my $retry = other($first, $path, $body, @h, key($key));

    is($_->[1]{headers}{'idempotency-status'}, 'repeated', "$what: $_->[0]")
        or diag("$first->{status} $first->{body}")
        for [ first => $first ], [ retry => $retry ];
    isnt($retry->{headers}{'x-pid'}, $first->{headers}{'x-pid'},
        "$what: by another worker");
    is(reply($retry), reply($first), "$what: the same answers");

    $again = $t->post($path, $body, @h);
    isnt(reply($again), reply($first), "$what: without the key, others");
    ok(!exists $again->{headers}{'idempotency-status'}, "$what: no key");
    isnt(reply($t->post($path, $body, @h, key(key()))), reply($first),
        "$what: nor with another");
}

# other writes do the same once more, and their answers need no key

$r = $t->post('/mark/done', "0\n", key('mark'));
is($r->{status}, 200, 'a mark');
is($r->{headers}{'idempotency-status'}, 'repeated', '  with a key');
is($t->post('/mark/done', "0\n", key('mark'))->{body}, $r->{body}, '  again');
is($t->request('DELETE', '/url/0', undef, key('del'))->{status}, 204,
    'a delete') for 1, 2;


# --- another request with the key: each of its URLs that was new to it

my @urls = map { url() } 1 .. 3;

is(words($t->post('/add', "$urls[0]\n$urls[1]\n", key('mix'))), 'new new',
    'a request');
is(words($t->post('/add', "$urls[2]\n$urls[1]\n$urls[1]\nhttp://site.example/1"
    . "\n", key('mix'))), 'new new seen seen', 'another one with the key');
is(words($t->post('/add', join("\n", @urls), key('mix'))), 'new new new',
    'and another');
is(words($t->post('/add', join("\n", @urls), key('mix2'))), 'seen seen seen',
    'the key alone does it');


# --- equal URLs of a batch, in other groups of it

my $many = join '', map { "http://group.example/" . $_ % 700 . "\n" }
    0 .. 1999;

$r = $t->post('/add', $many, key('many'));
is(count($r), 'new 700 seen 1300', 'each new URL once');
$again = $t->post('/add', $many, key('many'));
ok($again->{body} eq $r->{body}, '  and so for a retry');
is($t->get('/stats')->json->{idempotency_repeated} > 700, 1, '  counted')
    if !routed();

IO::Compress::Gzip::gzip(\$many, \my $gzip);
$r = $t->post('/add?brief=1', $gzip, key('many'), 'Content-Encoding' => 'gzip');
is(count($r), 'new 700 seen 1300', 'how it is sent does not matter');


# --- claims

$url = url();
is($t->post('/v/add', "$url\n")->{status}, 200, 'a URL that is claimed');
is($t->post('/v/claim?clear=1', "$url\n", key('give'))->{body},
    $t->post('/v/claim?clear=1', "$url\n", key('give'))->{body},
    'given back, and given back again');
$r = $t->post('/v/add?older=30d', "$url\n$url\n", key('due'));
is(words($r), 'due seen', 'it is due');
is($r->{headers}{'idempotency-status'}, 'repeated', '  to a key');
is(words($t->post('/v/add?older=30d', "$url\n", key('other'))), 'seen',
    'and no longer');
is(words(other($r, '/v/add?older=30d', "$url\n$url\n", key('due'))),
    'due seen', 'but for a retry');
is(words($t->post('/v/add', "$url\n", key('due'))), 'seen',
    '  that asks for it');

$t->post('/v/claim?clear=1', "$url\n");
is(words($t->post('/v/add?older=30d', "$url\n", key('next'))), 'due',
    'given back, and claimed by another');
is(words($t->post('/v/add?older=30d', "$url\n", key('due'))), 'due',
    '  a retry is answered as its first try');


# --- keys

for ('a' x 256, '"' . 'a' x 256 . '"', 'a b', 'a,b', '"a', '""', "\xc3\xa9",
    '"a";p=1')
{
    $r = $t->post('/add', "$url\n", 'Idempotency-Key' => $_);
    is($r->{status}, 400, 'a key that is none: ' . substr($_, 0, 10));
    like($r->json->{detail}, qr/1 to 255 printable/, 'and what is allowed');
}

$r = $t->http("POST /add HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    . "Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 0\r\n\r\n");
like($r, qr{^HTTP/1.1 400 .*more than one Idempotency-Key}s, 'two keys');

for (['q' x 255, '"' . 'q' x 255 . '"'], ['"a\\\\b\\" c"', '"a\\\\b\\" c"']) {
    $url = url();
    is(words($t->post('/add', "$url\n", key($_->[0]))), 'new', 'a key');
    is(words($t->post('/add', "$url\n", key($_->[1]))), 'new', '  again');
}

for (GET => HEAD =>) {
    $r = $t->request($_, '/url/1', undef, 'Idempotency-Key' => 'a b');
    is($r->{status}, 200, "$_ has no key");
}

is($t->post('/seen', "$url\n", 'Idempotency-Key' => 'a b')->{status}, 200,
    '/seen changes nothing: its key is not looked at');

$url = url();
$r = $t->post('/f/add', "$url\n", key('f'));
is("$r->{status} " . words($r), '200 new', 'a filter');
ok(!exists $r->{headers}{'idempotency-status'}, '  promises nothing');
is(words($t->post('/f/add', "$url\n", key('f'))), 'seen', '  and has no ids');


# --- scopes

$url = url();
is(words($t->post('/add', "$url\n", key('s'))), 'new', 'one zone');
is(words($t->post('/v/add', "$url\n", key('s'))), 'new',
    'another zone, the same key');
is(words($t->post('/quota/add', "$url\n", key('s'), 'X-Client' => 'a')),
    'seen', 'a client of a quota has keys of its own');

for my $user ('ann:a', 'bob:b') {
    my @as = (key('s'), Authorization => 'Basic ' . encode_base64($user, ''));

    is(words($t->post('/users/add', "$url/u\n", @as)),
        $user eq 'ann:a' ? 'new' : 'seen', "user $user") for 1, 2;
}

$url = url();
is(words($t->post('/quota/add', "$url\n$url/a\n$url/b\n", key('w'),
    'X-Client' => 'c')), $_ == 3 && routed() ? '' : 'new new new',
    'a quota') for 1 .. 3;
is(words($t->post('/quota/add', "$url/c\n$url/d\n", 'X-Client' => 'c')),
    routed() ? '' : 'new new', '  is not charged for what was new before');
is($t->post('/quota/add', "$url\n", key('w'), 'X-Client' => 'c')->{status},
    429, '  but asked');


# --- a try that did not come to its end

$url = url();
my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
    PeerPort => $t->port);
$sock->autoflush(1);
print $sock "POST /add HTTP/1.1\r\nHost: x\r\nIdempotency-Key: left\r\n"
    . "Content-Length: 1000\r\n\r\n$url/1\n$url/2\n";
sleep 0.2;
close $sock;
sleep 0.1;
is(words($t->post('/add', "$url/1\n$url/2\n$url/3\n", key('left'))),
    'new new new', 'a client leaves in the middle');


# --- tries at the same time

my $body = join '', map { "http://race.example/$_\n" } 1 .. 20000;
my (%child, %got);

for my $c (1 .. 4) {
    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        my $r = $t->client->request('POST', '/add?brief=1', $body,
            key('race'));
        spew($t->dir . "/race$c", $r->{body});
        POSIX::_exit(0);
    }

    $child{$pid} = $c;
}

while (%child) {
    my $pid = wait;
    my $c = delete $child{$pid} // next;
    $got{slurp($t->dir . "/race$c")}++;
}

is(scalar(keys %got), 1, 'four tries at the same time: one answer');
is(count({ body => (keys %got)[0] }), 'new 20000', '  that all is new');


# --- workers that are killed at any time

for my $try (1 .. 8) {
    my $key = key();
    my $client = $t->client;
    my $pid = $client->request('GET', '/health')->{headers}{'x-pid'};

    $url = url();
    $body = join '', map { "$url/$_\n" } 1 .. 10000;
    $client->_send("POST /add?brief=1 HTTP/1.1\r\nHost: x\r\n"
        . "Idempotency-Key: $key\r\nContent-Length: " . length($body)
        . "\r\n\r\n$body");
    sleep 0.004 * $try;
    $t->kill_worker(KILL => $pid);
    undef $r;
    wait_until(10, sub {
        $r = $t->client->request('POST', '/add?brief=1', $body, key($key));
        return $r && $r->{status} == 200;
    });
    is(count($r), 'new 10000', 'a worker is killed: all is new to the retry');
}

ok(wait_until(5, sub { 2 == (my @p = $t->worker_pids) }), 'two workers');


# --- pages of other sites; figures

$r = $t->request('OPTIONS', '/add', undef, Origin => 'https://ui.example',
    'Access-Control-Request-Method' => 'POST');
like($r->{headers}{'access-control-allow-headers'}, qr/\bIdempotency-Key\b/,
    'an allowed page may send the header');

if (!routed()) {
    is($t->get('/stats')->json->{idempotency_forgotten}, 0,
        'none is forgotten');
    like($t->get('/metrics')->{body},
        qr/^urlstore_idempotency_$_\{zone="u"\} \d+$/m, $_)
        for qw(repeated_total forgotten_total);
}


# --- reload and restart

$url = url();
is(words($t->post('/add', "$url\n", key('reload'))), 'new', 'a URL');
ok($t->reload, 'reload');
is(words($t->post('/add', "$url\n", key('reload'))), 'new', '  keeps keys');
ok($t->reload("urlstore_idempotency off;\n$MAIN"), 'off');
$r = $t->post('/add', "$url\n", 'Idempotency-Key' => 'no key at all');
is(words($r), 'seen', 'off: the header means nothing');
ok(!exists $r->{headers}{'idempotency-status'}, '  and has no answer');
is(words($t->post('/add', "$url/off\n", key('reload'))), 'new', '  nor is it '
    . 'remembered');
ok($t->reload($MAIN), 'on again');
$r = $t->post('/add', "$url\n$url/off\n", key('reload'));
is(words($r), 'new seen', '  keys are known still');
ok(!exists $r->{headers}{'idempotency-status'},
    '  but no promise is made of what was added meanwhile');


# --- time and memory

my $small = <<'CONF';
urlstore_zone u 16m;
urlstore_idempotency 16k keep=2s;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

my $s = UrlStore::Test->new(workers => 1)->run($small);
my $start = time;
is(words($s->post('/add', "http://t.example/\n", key('time'))), 'new',
    'a URL');
$r = $s->post('/add', "http://t.example/\n", key('time'));
is(words($r), 'new', 'within two seconds') if time - $start < 0.9;
sleep $start + 3.1 - time if time < $start + 3.1;
is(words($s->post('/add', "http://t.example/\n", key('time'))), 'seen',
    'later it is not known');

# a second of the clock that ends meanwhile is not one of these

$s->reload($small =~ s/keep=2s/keep=1s/r);

for (1 .. 5) {
    sleep 1.8 - (time - int time);
    $start = time;
    $s->post('/add', "http://t.example/s$_\n", key("second$_"));
    sleep 0.3;
    $r = $s->post('/add', "http://t.example/s$_\n", key("second$_"));
    last if time - $start < 0.9;
}

is(words($r), 'new', 'within a second');

# a longer time: for so long, what was forgotten earlier may come again

ok($s->reload($small =~ s/keep=2s/keep=4s/r), 'four seconds');
$start = time;
$r = $s->post('/add', "http://t.example/\n", key('time'));
is(words($r), 'seen', 'what was forgotten is not known again');
ok(!exists $r->{headers}{'idempotency-status'}, '  and nothing is promised')
    if time - $start < 3;
sleep 6;
is($s->post('/add', "http://t.example/\n", key('time'))->{headers}
    {'idempotency-status'}, 'repeated', 'after four seconds it is');

$s = UrlStore::Test->new(workers => 1)->run($small =~ s/keep=2s/keep=1h/r);

my $room = 0;

for (1 .. 400) {
    $r = $s->post('/add', "http://t.example/$_\n", key("k$_"));
    last if !$r->{headers}{'idempotency-status'};
    $room++;
}

cmp_ok($room, '>', 250, 'as many keys as there is room for');
ok(!$r->{headers}{'idempotency-status'}, '  and then no promise');
is(words($s->post('/add', "http://t.example/200\n", key('k200'))), 'new',
    'what is there is answered so');
$s->post('/add', "http://t.example/more/$_\n", key("m$_")) for 1 .. 50;
is(words($s->post('/add', "http://t.example/1\n", key('k1'))), 'seen',
    'the oldest is forgotten');
cmp_ok($s->get('/stats')->json->{idempotency_forgotten}, '>', 40, 'counted')
    if !routed();


# --- words

for ([ '1k', 'invalid size "1k" of urlstore_idempotency: at least 16k, or '
        . '"off", is expected' ],
    [ 'x', 'invalid size "x"' ],
    [ '-1', 'invalid size "-1"' ],
    [ '1m x', 'invalid parameter "x" of urlstore_idempotency "1m": allowed '
        . 'are keep' ],
    (map { [ "1m keep=$_", qq/invalid value "$_" of parameter "keep" of /
        . 'urlstore_idempotency "1m": a time from 1s to 1d is expected' ] }
        '', '0', '2d', 'x'),
    [ 'off keep=1s', '"off" allows no other parameter' ],
    [ '1m; urlstore_idempotency 1m', 'is duplicate' ],
    [ '1m keep=1s 2', 'invalid number of arguments' ])
{
    my ($args, $words) = @$_;
    my ($rc, $out) = $s->check("urlstore_idempotency $args;\n"
        . "urlstore_zone u 16m;\n");

    is($rc, 1, "refused: $args");
    like($out, qr/\[emerg\].*\Q$words\E/, 'and why');
}


# a key, as a header; without one, another each time

sub key
{
    my ($name) = @_;

    return 'k' . ++$k if !defined $name;
    return ('Idempotency-Key' => $name);
}


sub url { return 'http://site.example/' . ++$n }


# the statuses of an answer of lines

sub words
{
    my ($answer) = @_;

    return join ' ', $answer->{body} =~ /^[\d-]+\t(\w+)/mg;
}


sub count
{
    my ($answer) = @_;
    my %n;

    $n{$_}++ for split ' ', words($answer);

    return join ' ', map { "$_ $n{$_}" } sort keys %n;
}


# what must be the same

sub reply
{
    my ($answer) = @_;

    return join "\n", "$answer->{status} $answer->{reason}",
        (map { "$_: " . ($answer->{headers}{$_} // '') }
            qw(content-type location)), '',
        $answer->{body} =~ s/next_id(?:s":\{"0":|s=0:|"?[:=])\d+//r;
}


# from another worker than this answer

sub other
{
    my ($answer, @request) = @_;

    for (1 .. 200) {
        my $client = $t->client;
        my $r = $client->request('GET', '/health') or next;

        next if $r->{headers}{'x-pid'} == $answer->{headers}{'x-pid'};

        return $client->request('POST', @request);
    }

    return;
}
