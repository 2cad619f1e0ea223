#!/usr/bin/perl

# Idempotency-Key: a retry gets the reply of the first try, byte for byte, from
# any worker, in all formats, whatever the client, a worker or the disk did in
# between; and nothing else ever gets it.

use strict;
use warnings;

use lib 't/lib';
use IO::Compress::Gzip ();
use MIME::Base64 qw(encode_base64);
use Time::HiRes qw(sleep time);
use UrlStore::H2;
use UrlStore::Test;

my $MAIN = <<'CONF';
urlstore_zone u 64m marks=done,todo;
urlstore_zone v 16m revisit=1m;
urlstore_filter f 1m capacity=100000 error=0.001;
urlstore_filter tiny 1m capacity=1 error=0.1;
add_header X-Pid $pid always;
log_format vars '$http_idempotency_key [$urlstore_id|$urlstore_status|'
    '$urlstore_url]';
urlstore_max_batch 200000;
client_max_body_size 16m;
client_body_buffer_size 8k;
server {
    listen 127.0.0.1:%%PORT%%;
    listen 127.0.0.1:%%PORT1%% http2;
    urlstore_allow_origin https://ui.example;
    access_log %%DIR%%/vars.log vars;
    location / { urlstore_api u; }
    location /v/ { urlstore_api v; }
    location /f/ { urlstore_api f; }
    location /tiny/ { urlstore_api tiny; }
    location /quota/ { urlstore_quota $http_x_client 1/h; urlstore_api u; }
    location /users/ {
        auth_basic users;
        auth_basic_user_file %%DIR%%/users;
        urlstore_api u;
    }
    location /endless/ { client_max_body_size 0; urlstore_api u; }
}
CONF

my $t = UrlStore::Test->new;

spew($t->dir . '/users', "ann:{PLAIN}a\nbob:{PLAIN}b\n");
$t->run($MAIN);

my ($n, $k) = (0, 0);
my $ndjson = 'application/x-ndjson';
my $json = 'application/json';
my ($r, $again, $url);


# --- every form of a request; what is asked again without a key shows that the
# same reply is not what would be answered now

my @forms = (
    [ 'text', sub { [ POST => '/add', "$_[0]\n$_[0]/b\n" ] } ],
    [ 'text, brief', sub { [ POST => '/add?brief=1', "$_[0]\n" ] } ],
    [ 'text, all options', sub {
        [ POST => '/add?summary=1&sites=1&only=new', "$_[0]\nbad:\n" ] } ],
    [ 'an array', sub { [ POST => '/add', qq(["$_[0]","x:"]), $json ] } ],
    [ 'an object', sub { [ POST => '/add', qq({"url":"$_[0]"}), $json ] } ],
    [ 'NDJSON', sub { [ POST => '/add', qq({"url":"$_[0]","ref":[1]}\n),
        $ndjson ] } ],
    [ 'a form', sub { [ POST => '/add', 'url=' . uri_escape($_[0]),
        'application/x-www-form-urlencoded' ] } ],
    [ 'a query', sub { [ POST => '/add?url=' . uri_escape($_[0]), '' ] } ],
    [ 'JSON of text', sub { [ POST => '/add', "$_[0]\n", undef,
        Accept => $json ] } ],
    [ 'an empty body', sub { [ POST => '/add?summary=1', '' ] }, 1 ],
    [ 'a filter', sub { [ POST => '/f/add', "$_[0]\n" ] } ],
    [ 'a mark', sub { [ POST => '/mark/done', "$_[0]\n0\n9999999\n" ] }, 1 ],
    [ 'a mark cleared', sub { [ DELETE => '/mark/done?summary=1', "0\n",
        'text/plain' ] }, 1 ],
    [ 'a deleted URL', sub { [ DELETE => '/url/0', undef ] }, 1 ],
);

is($t->post('/add', "http://zero.example/\n")->{status}, 200, 'a URL');

for (@forms) {
    my ($what, $make, $same) = @$_;
    my $key = key();
    my ($method, $path, $body, $type, @h) = @{ $make->(url()) };

    push @h, 'Content-Type' => $type if $type;

    my $first = $t->request($method, $path, $body, @h, key($key));
    my $retry = other($first, $method, $path, $body, @h, key($key));

    is($first->{headers}{'idempotency-status'}, 'kept', "$what: kept")
        or diag("$first->{status} $first->{body}");
    is($retry->{headers}{'idempotency-status'}, 'replayed', "$what: replayed");
    isnt($retry->{headers}{'x-pid'}, $first->{headers}{'x-pid'},
        "$what: by another worker");
    is(reply($retry), reply($first), "$what: the same reply");

    $again = $t->request($method, $path, $body, @h);
    isnt(reply($again), reply($first), "$what: it is another one now")
        if !$same;
    ok(!exists $again->{headers}{'idempotency-status'}, "$what: no key");
}

# of broken JSON nothing is applied, so nothing is kept: the key is free

my $free = key();
my @broken = (POST => '/add', '["http://free.example/", oops', key($free),
    'Content-Type' => $json);

is($t->request(@broken)->{status}, 400, 'broken JSON') for 1, 2;
is($t->request(POST => '/add', '["http://free.example/"]', key($free),
    'Content-Type' => $json)->json->{new}, 1, '... has used no key');

# what a claim says can be said once: with a key it is said again

$url = url();
is($t->post('/v/add', "$url\n")->{status}, 200, 'a URL that is claimed');
is($t->post('/v/claim?clear=1', "$url\n", key('give'))->{body},
    $t->post('/v/claim?clear=1', "$url\n", key('give'))->{body},
    'given back, and given back again');
$r = $t->post('/v/add?older=30d', "$url\n", key('due'));
like($r->{body}, qr/\tdue\t/, 'it is due');
like($t->post('/v/add?older=30d', "$url\n", key('other'))->{body},
    qr/\tseen\t/, 'and no longer');
is(reply(other($r, POST => '/v/add?older=30d', "$url\n", key('due'))),
    reply($r), 'but for a retry, which is answered "due"');
$r = $t->post('/v/claim', "$url\n", key('claim'));
is($r->{headers}{'idempotency-status'}, 'kept', '/claim');
is($t->post('/v/claim', "$url\n", key('claim'))
    ->{headers}{'idempotency-status'}, 'replayed', 'has keys');

like($t->post('/add?url=http://loc.example/', '', key('loc'))
    ->{headers}{location}, qr{^url/\d+$}, 'a new single URL has a Location');
like($t->post('/add?url=http://loc.example/', '', key('loc'))
    ->{headers}{location}, qr{^url/\d+$}, 'and its retry, too');
is($t->post('/add?url=http://loc.example/', '', key('loc'))->{status}, 201,
    'with 201');

# in the access log, the variables are those of the first try

my @logged;

ok(wait_until(5, sub {
    @logged = slurp($t->dir . '/vars.log') =~ /^\S*loc\S* (\[.*\])$/mg;
    return @logged == 3;
}), 'three tries are logged');
is_deeply([ @logged[1, 2] ], [ @logged[0, 0] ], '  with the same variables');
like($logged[0], qr{^\[\d+\|new\|http://loc.example/\]$}, '  which it has');


# --- the same key with another request

$url = url();
is($t->post('/add?brief=1', "$url\n", key('m'), 'Content-Type' => 'text/plain')
    ->{status}, 200, 'a request');

for ([ 'another body', POST => '/add?brief=1', "$url/\n" ],
    [ 'a longer body', POST => '/add?brief=1', "$url\n\n" ],
    [ 'an empty body', POST => '/add?brief=1', '' ],
    [ 'another query', POST => '/add?brief=0', "$url\n" ],
    [ 'no query', POST => '/add', "$url\n" ],
    [ 'another endpoint', POST => '/mark/done?brief=1', "$url\n" ],
    [ 'another method', DELETE => '/mark/done?brief=1', "$url\n" ],
    [ 'Accept', POST => '/add?brief=1', "$url\n", Accept => $json ],
    [ 'another type', POST => '/add?brief=1', "$url\n",
        'Content-Type' => $ndjson ],
    [ 'no type', POST => '/add?brief=1', "$url\n", 'Content-Type' => undef ],
    [ 'an encoding', POST => '/add?brief=1', "$url\n",
        'Content-Encoding' => 'identity' ])
{
    my ($what, $method, $path, $body, @h) = @$_;

    $r = $t->request($method, $path, $body, 'Content-Type' => 'text/plain',
        @h, key('m'));
    is($r->{status}, 422, "$what: 422");
    like($r->{body}, qr/Idempotency-Key is that of another request/,
        "$what: and why") or diag($r->{body});
}

is($t->post('/add?brief=1', "$url\n", key('m'), 'Content-Type' => 'text/plain')
    ->{headers}{'idempotency-status'}, 'replayed', 'the first is still there');

is($t->post('/mark/todo', "0\n", key('n'))->{status}, 200, 'one mark');
is($t->post('/mark/done', "0\n", key('n'))->{status}, 422, 'another mark');


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

$url = url();
$r = $t->post('/add', "$url\n", 'Idempotency-Key' => 'q' x 255);
is($r->{headers}{'idempotency-status'}, 'kept', 'the longest key');
is($t->post('/add', "$url\n", 'Idempotency-Key' => '"' . 'q' x 255 . '"')
    ->{body}, $r->{body}, 'is the same in quotes');

for (GET => HEAD =>) {
    $r = $t->request($_, '/url/1', undef, 'Idempotency-Key' => 'a b');
    is($r->{status}, 200, "$_ has no key");
}

$r = $t->post('/seen', "$url\n", key('q' x 255));
is($r->{status}, 200, '/seen changes nothing: its key is not looked at');
ok(!exists $r->{headers}{'idempotency-status'}, 'and not answered');
is($t->request('HEAD', '/add', undef, key('q'))->{status}, 405, 'HEAD /add');


# --- scopes

$url = url();
like($t->post('/add', "$url\n", key('s'))->{body}, qr/\tnew\t/, 'one zone');
like($t->post('/v/add', "$url\n", key('s'))->{body}, qr/\tnew\t/,
    'another zone, the same key');
like($t->post('/quota/add', "$url\n", key('s'), 'X-Client' => 'a')->{body},
    qr/\tseen\t/, 'a client of a quota has keys of its own');
is($t->post('/quota/add', "other\n", key('s'), 'X-Client' => 'b')->{status},
    200, 'and another client');
is($t->post('/quota/add', "other\n", key('s'), 'X-Client' => 'a')->{status},
    422, 'each client for itself');

for my $user ('ann:a', 'bob:b') {
    is($t->post('/users/add', "$user\n", key('s'),
        Authorization => 'Basic ' . encode_base64($user, ''))->{status}, 200,
        "user $user");
}

$url = url();
$r = $t->post('/quota/add', "$url\n$url/a\n$url/b\n", key('w'),
    'X-Client' => 'c');
is($r->{status}, 200, 'a client uses its quota up');
is($t->post('/quota/add', "$url/c\n", 'X-Client' => 'c')->{status}, 429,
    'there is nothing left');
$again = $t->post('/quota/add', "$url\n$url/a\n$url/b\n", key('w'),
    'X-Client' => 'c');
is(reply($again), reply($r), 'its retry is answered all the same');
is($t->post('/quota/add', "$url/c\n", key('w2'), 'X-Client' => 'c')
    ->{status}, 429, 'and 429 is not kept') for 1 .. 2;
ok(!exists $t->post('/quota/add', "$url/c\n", key('w2'), 'X-Client' => 'c')
    ->{headers}{'idempotency-status'}, 'nor said to be');


# --- what is not kept: errors that changed nothing, or can pass

$r = $t->post('/add?url=x:', '', key('bad'));
is($r->{status}, 422, 'a URL that is none');
ok(!exists $r->{headers}{'idempotency-status'}, 'has a reply that is not kept');
is($t->post('/add?url=' . uri_escape(url()), '', key('bad'))->{status}, 201,
    'the key is as new');

is($t->post('/tiny/add', url() . "\n")->{status}, 200, 'a full filter');

for (1 .. 2) {
    $r = $t->post('/tiny/add?url=' . uri_escape(url()), '', key('full'));
    is($r->{status}, 507, 'has no room');
    ok(!exists $r->{headers}{'idempotency-status'}, 'and 507 is not kept');
}

is($t->post('/add', 'x' x 9_000_000, key('big'))->{status}, 413,
    'a body too large');
is($t->post('/endless/add', sub { undef }, key('e'))->{status}, 411,
    'a chunked body without any limit');
is($t->post('/endless/add', '', key('e'))->{status}, 200, 'with a length');


# --- how a body comes is no part of it

$url = url();
my $lines = join '', map { "$url/$_\n" } 1 .. 3000;
$r = $t->post('/add', $lines, key('c'));
is($r->{headers}{'idempotency-status'}, 'kept', 'a body in a file');

my @pieces = $lines =~ /(.{1,7000})/gs;

$again = $t->post('/add', sub { shift @pieces }, key('c'));
ok(reply($again) eq reply($r), 'chunked');
is($again->{headers}{'idempotency-status'}, 'replayed', 'is the same request');

my $h2 = UrlStore::H2->new('127.0.0.1', $t->port(1), window => 1 << 20);
$again = $h2->request('POST', '/add', $lines, key('c'));
is($again->{status}, 200, 'HTTP/2') or diag($h2->{fault});
ok($again->{body} eq $r->{body}, 'the same reply');

# without a body, nothing has to end it

my $bare = $t->post('/add?url=' . uri_escape(url()), '')->{headers}{location};
is($h2->request('DELETE', "/endless/$bare", undef, key('d'))->{status}, 204,
    'HTTP/2 without a body, and without a limit') or diag($h2->{fault});
is($h2->request('POST', '/endless/add', url() . "\n", key('dd'))->{status}, 411,
    'with a body');

IO::Compress::Gzip::gzip(\$lines, \my $gzip);
IO::Compress::Gzip::gzip(\$lines, \my $gzip1, -Level => 1, -Minimal => 1);
$r = $t->post('/add', $gzip, key('z'), 'Content-Encoding' => 'gzip');
is($r->{headers}{'idempotency-status'}, 'kept', 'a compressed body');
$again = $t->post('/add', $gzip, key('z'), 'Content-Encoding' => 'gzip');
ok(reply($again) eq reply($r), 'as it was sent');
is($t->post('/add', $gzip1, key('z'), 'Content-Encoding' => 'gzip')->{status},
    422, 'compressed otherwise is another request');


# --- long replies: of marks by id, whose URLs are looked up as they are sent

my $ids = join '', map { "$_\n" } 1 .. 2900;
$r = $t->post('/mark/todo', $ids, key('l'));
is($r->{headers}{'idempotency-status'}, 'kept', 'a long reply is kept');
cmp_ok(length $r->{body}, '>', 100_000, 'of several slices');
$again = $t->post('/mark/todo', $ids, key('l'));
ok(reply($again) eq reply($r), 'and the same again');

my $many = join '', map { "$url/long/$_\n" } 1 .. 60000;
$r = $t->post('/add', $many, key('ll'));
is("$r->{status} $r->{headers}{'idempotency-status'}", '200 not-kept',
    'one that is too long is sent, and not kept');
is(scalar(() = $r->{body} =~ /\tnew\t/g), 60000, 'all of it');
$r = $t->post('/add', $many, key('ll'));
is(scalar(() = $r->{body} =~ /\tseen\t/g), 60000, 'its retry is executed');


# --- clients that leave, and slow ones

$url = url();
my $head = "POST /add HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    . "Idempotency-Key: slow\r\nContent-Length: "
    . length("$url/1\n$url/2\n") . "\r\n\r\n";

my $slow = connection($head . "$url/1\n");
my $gone = connection($head . "$url/1\n");
sleep 0.1;
close $gone;
sleep 0.1;

$r = $t->post('/add', "$url/1\n$url/2\n", key('slow'));
like($r->{body}, qr/\tnew\t.*\n.*\tnew\t/,
    'two tries that were not sent to their end have changed nothing');
is($r->{headers}{'idempotency-status'}, 'kept', 'nor are they under way');

print $slow "$url/2\n";
$again = join '', <$slow>;
like($again, qr/Idempotency-Status: replayed/, 'the slow one is a retry then');
is($again =~ s/.*?\r\n\r\n//sr, $r->{body}, 'with the same reply');


# a first try that is slow, over a connection that is used again

for my $what ('text', 'a problem', 'a deleted URL') {
    my $client = $t->client;
    my $body = $what eq 'a problem' ? "url=x:\n" : url() . "\n";
    my @bytes = split //, $body;
    my @slow = (sub { sleep 0.02 if @bytes % 10 == 0; shift @bytes },
        key(key()));

    $client->{no_retry} = 1;
    $client->{timeout} = 5;

    for (1 .. 3) {
        @bytes = split //, $body;
        $r = $what eq 'a deleted URL'
            ? $client->request('DELETE', '/url/2', @slow)
            : $client->request('POST', '/add', @slow,
                'Content-Type' => $what eq 'a problem'
                    ? 'application/x-www-form-urlencoded' : 'text/plain');
        ok($r && $r->{status} < 500, "$what, byte by byte, try $_");
    }

    $r = $client->request('GET', '/health');
    is($r && $r->{status}, 200, 'the connection goes on');
}


# --- a retry while the first try is under way; its worker is stopped then,
# goes on, or is killed

for my $end ('goes on', 'is killed') {
    my $found;

    for my $try (1 .. 100) {
        my $key = key();
        $url = url();
        my $body = join '', map { "$url/$_\n" } 1 .. 30000;
        my $client = $t->client;
        my $pid = $client->request('GET', '/health')->{headers}{'x-pid'};

        $client->_send("POST /add?brief=1 HTTP/1.1\r\nHost: x\r\n"
            . "Idempotency-Key: $key\r\nContent-Length: " . length($body)
            . "\r\n\r\n$body");
        sleep 0.003 * ($try % 40);
        kill 'STOP', $pid;

        $r = from_other($pid, POST => '/add?brief=1', $body, key($key));

        if (!$r || $r->{status} != 409) {

            # it had not begun, or was done

            kill 'CONT', $pid;
            $again = $client->_read('POST');
            fail('one reply') if !$r || $again->{body} ne $r->{body};
            next;
        }

        $found = $try;
        is($r->{headers}{'retry-after'}, 1, '409 has Retry-After');
        like($r->json->{detail}, qr/under way/, 'and says why');
        is(from_other($pid, POST => '/add?brief=1', "x\n", key($key))
            ->{status}, 422, 'another request is another one, even then');

        if ($end eq 'goes on') {
            kill 'CONT', $pid;
            $again = $client->_read('POST');
            $r = from_other($pid, POST => '/add?brief=1', $body, key($key));
            is($again->{headers}{'idempotency-status'}, 'kept', 'it goes on');
            is($r->{headers}{'idempotency-status'}, 'replayed', 'a retry');
            ok($r->{body} eq $again->{body}, 'gets its reply');
            is(scalar(() = $r->{body} =~ /\tnew$/mg), 30000, 'all new');

        } else {
            $t->kill_worker(KILL => $pid);
            $r = undef;
            wait_until(10, sub {
                $r = from_other($pid, POST => '/add?brief=1', $body,
                    key($key));
                return $r && $r->{status} != 409;
            });
            is($r->{status}, 200, 'its worker is killed: the retry is new');
            is($r->{headers}{'idempotency-status'}, 'kept', 'and kept');
            is(scalar(() = $r->{body} =~ /^\d+\t(?:new|seen)$/mg), 30000,
                'and whole');
        }

        last;
    }

    ok($found, "a try was caught under way: it $end");
}

is(scalar($t->worker_pids), 2, 'two workers') if wait_until(5, sub {
    2 == (my @p = $t->worker_pids) });


# --- pages of other sites

$r = $t->request('OPTIONS', '/add', undef, Origin => 'https://ui.example',
    'Access-Control-Request-Method' => 'POST');
like($r->{headers}{'access-control-allow-headers'}, qr/\bIdempotency-Key\b/,
    'an allowed page may send the header');


# --- figures

$r = $t->get('/stats')->json;
cmp_ok($r->{"idempotency_$_"}, '>', 0, "counts: $_")
    for qw(kept not_kept replayed conflicts mismatched used);
is($r->{idempotency_size} >> 20, 15, '16m, less what nginx needs of it');
is($r->{idempotency_dropped}, 0, 'nothing was dropped before its time');

my $metrics = $t->get('/metrics')->{body};

like($metrics, qr/^urlstore_idempotency_$_\{zone="u"\} \d+$/m, $_)
    for qw(kept_total not_kept_total replayed_total conflicts_total
    mismatched_total size_bytes used_bytes dropped_total);


# --- reload and restart

$url = url();
$r = $t->post('/add', "$url\n", key('reload'));
ok($t->reload, 'reload');
is(reply($t->post('/add', "$url\n", key('reload'))), reply($r),
    'kept by a reload');
ok($t->reload("urlstore_idempotency 8m;\n$MAIN"), 'another size');
is($t->post('/add', "$url\n", key('reload'))->{headers}{'idempotency-status'},
    'kept', 'begins anew');
ok($t->reload("urlstore_idempotency off;\n$MAIN"), 'off');
$r = $t->post('/add', "$url\n", 'Idempotency-Key' => 'no key at all');
is($r->{status}, 200, 'off: the header means nothing');
ok(!exists $r->{headers}{'idempotency-status'}, 'and has no answer');
is($t->get('/stats')->json->{idempotency_size}, 0, 'nor memory');
ok($t->reload($MAIN), 'on again');
$r = $t->post('/add', "$url\n", key('restart'));
ok($t->stop && $t->start, 'restart');
is($t->post('/add', "$url\n", key('restart'))->{headers}
    {'idempotency-status'}, 'kept', 'a restart begins anew');


# --- time and memory

my $small = <<'CONF';
urlstore_zone u 16m;
urlstore_idempotency 256k keep=2s;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

my $s = UrlStore::Test->new(workers => 1)->run($small);
my $start = time;
$r = $s->post('/add', "http://t.example/\n", key('time'));
$again = $s->post('/add', "http://t.example/\n", key('time'));
is($again->{body}, $r->{body}, 'within two seconds') if time - $start < 1.9;
sleep $start + 2.3 - time if time < $start + 2.3;
$r = $s->post('/add', "http://t.example/\n", key('time'));
is($r->{body}, "0\tseen\thttp://t.example/\n", 'later it is a new request');
is($r->{headers}{'idempotency-status'}, 'kept', 'kept anew');

ok($s->reload($small =~ s/keep=2s/keep=1h/r), 'an hour');

my @keys = map { "drop$_" } 1 .. 60;
my $text = join '', map { "http://t.example/$_\n" } 1 .. 400;

is($s->post('/add', $text, key($_))->{headers}{'idempotency-status'}, 'kept',
    $_) for @keys;
$r = $s->post('/add', $text, key($keys[-1]));
is($r->{headers}{'idempotency-status'}, 'replayed', 'the last is there');
is($s->post('/add', $text, key($keys[0]))->{headers}{'idempotency-status'},
    'kept', 'the first was dropped for it');
$r = $s->get('/stats')->json;
cmp_ok($r->{idempotency_used}, '<=', $r->{idempotency_size}, 'in its bounds');
cmp_ok($r->{idempotency_size}, '<', 256 << 10, 'that are those of the size');
cmp_ok($r->{idempotency_dropped}, '>', 30, 'counted');


# --- words

for ([ '1k', 'invalid size "1k" of urlstore_idempotency: at least 256k, or '
        . '"off", is expected' ],
    [ 'x', 'invalid size "x"' ],
    [ '-1', 'invalid size "-1"' ],
    [ '1m x', 'invalid parameter "x" of urlstore_idempotency: keep=TIME is' ],
    [ '1m keep=', 'invalid time "" of urlstore_idempotency: 1s to 1d is' ],
    [ '1m keep=0', 'invalid time "0"' ],
    [ '1m keep=2d', 'invalid time "2d"' ],
    [ '1m keep=x', 'invalid time "x"' ],
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


# what must be the same

sub reply
{
    my ($answer) = @_;

    return join "\n", "$answer->{status} $answer->{reason}",
        (map { "$_: " . ($answer->{headers}{$_} // '') }
            qw(content-type content-length location)), '', $answer->{body};
}


sub from_other
{
    my ($pid, @request) = @_;
    my $answer;

    for (1 .. 200) {
        my $client = $t->client;
        $client->{timeout} = 3;

        my $r = $client->request('GET', '/health') or next;

        next if $r->{headers}{'x-pid'} == $pid;

        $client->{timeout} = 60;
        return $client->request(@request);
    }

    return;
}


# from another worker than this answer

sub other
{
    my ($answer, @request) = @_;

    return from_other($answer->{headers}{'x-pid'}, @request);
}


sub connection
{
    my ($text) = @_;

    my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $t->port);

    $sock->autoflush(1);
    print $sock $text;

    return $sock;
}
