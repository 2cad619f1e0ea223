#!/usr/bin/perl

# urlstore_route: the interface over the shards of a cluster.
#
#     three    shards that all answer
#     faults   one that breaks off, is another shard, sends too much, ...
#     nodes    a shard with two nodes, of which the first does nothing
#     one      a node as the only shard, asked for what a batch can ask
#     conf     what nginx -t refuses
#
# Shards are those of UrlStore::FakeShard, but for the last two.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Compress::Zlib ();
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(sleep);

use UrlStore::FakeShard;
use UrlStore::H2;
use UrlStore::Test;

my $t = UrlStore::Test->new;
$t->{client} = $t->client(0);
$t->{client}{timeout} = 60;

my $json = JSON::PP->new->canonical;


# Hosts by shard: of a map with three shards whose slots are thirds, the slots
# of these hosts are 1148, 2245 and 3401 (crc32 >> 20).

my @slots = ([0, 1365], [1366, 2730], [2731, 4095]);
my @host = map { my ($from, $to) = @$_; host($from, $to) } @slots;


sub host
{
    my ($from, $to) = @_;

    for my $n (0 .. 10000) {
        my $slot = Compress::Zlib::crc32("h$n.com") >> 20;

        return "h$n.com" if $slot >= $from && $slot <= $to;
    }
}


sub map_text
{
    my ($nodes, %o) = @_;

    my $i = 0;
    my %shards = map { $i++ => { uuid => sprintf('%032x', $i),
        nodes => [split ' ', $_] } } @$nodes;

    return $json->encode({
        cluster => 'c' x 32, version => 1, key => 'site',
        norm => 'crawler/1 unicode=15.0 www=first', shards => \%shards,
        slots => @$nodes == 1 ? [['0-4095', 0]]
            : [map { ["$slots[$_][0]-$slots[$_][1]", $_] } 0 .. 2], %o,
    });
}


sub conf
{
    my (%port) = @_;
    my ($app) = map { $port{$_} } sort keys %port;

    return 'urlstore_cluster crawl %%DIR%%/map.json;'
        . "upstream app { server 127.0.0.1:$app; }"
        . join('', map { "upstream $_ { server 127.0.0.1:$port{$_};"
            . ' keepalive 8; }' } sort keys %port)
        . <<'CONF';
urlstore_reject crawl name=secret ^http://secret;
client_max_body_size 8m;
proxy_method PUT;
proxy_pass_request_body off;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_route crawl timeout=6s; }
    location /quick/ { urlstore_route crawl connect=200ms timeout=300ms; }
    location /auth/ { auth_request /known; urlstore_route crawl; }
    location = /known {
        internal;
        set $args url=http://www.known.com/;
        urlstore_route crawl endpoint=seen;
    }
    location = /only/add { urlstore_route crawl endpoint=add; }
    location /denied/ { deny all; urlstore_route crawl; }
    location /limited/ {
        urlstore_route crawl;
        limit_except GET HEAD { deny all; }
    }
}
server {
    listen 127.0.0.1:%%PORT2%% http2;
    location / {
        urlstore_quota $server_name$scheme 1/h burst=1;
        urlstore_route crawl;
    }
    location /app {
        proxy_pass http://app;
        proxy_ignore_client_abort on;
    }
}
CONF
}


sub id { return $_[0] << 40 | $_[1] }


# --- three shards

# what a fault is, by a word in the URL

my $many = 'x' x 2e6;
my $tag = 'Urlstore-Map: ' . 'c' x 32 . ' 2 1 ' . '0' x 32;

my %fault = (
    hang    => sub { 'hang' },
    slow    => sub { sleep 0.5; '' },
    later   => sub { sleep 0.5; ${ $_[0] } = reply(200, '',
        'X-Accel-Redirect: /seen?url=http://x.com/'); '' },
    break   => sub { ${ $_[0] } =~ s/(\r\n\r\n.*?\n).*/$1/s; 'close' },
    stall   => sub { ${ $_[0] } =~ s/(\r\n\r\n.*?\n).*/$1/s; '' },
    cut     => sub { ${ $_[0] } = "HTTP/1.1 200 X\r\n$tag\r\nTransfer-Encoding:"
        . " chunked\r\n\r\n5\r\nhttp:\r\n"; 'close' },
    size    => sub { ${ $_[0] } = "HTTP/1.1 200 X\r\n$tag\r\nTransfer-Encoding:"
        . " chunked\r\n\r\nfffffffffffffffff\r\nx"; '' },
    glued   => sub { ${ $_[0] } = "HTTP/1.1 200 X\r\n$tag\r\nTransfer-Encoding:"
        . " chunked\r\n\r\n3\r\n-\tu0\r\n\r\n"; '' },
    coded   => sub { ${ $_[0] } =~ s/\r\n\r\n/\r\nTransfer-Encoding: x$&/; '' },
    lengthy => sub { ${ $_[0] } =~ s/Content-Length: \d+/$&$&/; '' },
    nameless => sub { ${ $_[0] } =~ s/\r\n\r\n/\r\nheader$&/; '' },
    pieces  => sub { ${ $_[0] } =~ s{Content-Length: \d+(.*?\r\n\r\n)(.*)}
        {"Transfer-Encoding: chunked$1" . join('', map { "01;of=1\r\n$_\r\n" }
            split //, $2) . "0\r\nA: b\r\n\r\n"}se; '' },
    interim => sub { ${ $_[0] } = "HTTP/1.1 100 X\r\n$tag\r\n\r\n"; 'close' },
    switch  => sub { ${ $_[0] } = "HTTP/1.1 101 X\r\n$tag\r\nUpgrade: x\r\n"
        . "Connection: upgrade\r\n\r\nof the node"; 'close' },
    nothing => sub { ${ $_[0] } = ''; 'close' },
    half    => sub { ${ $_[0] } = 'HTTP/1.1 20'; 'close' },
    other   => sub { ${ $_[0] } =~ s/\b2199/1099/g; '' },
    error   => sub { ${ $_[0] } = reply(500); '' },
    misled  => sub { ${ $_[0] } = reply(421, '', $tag); '' },
    plain   => sub { ${ $_[0] } =~ s/Urlstore-Map: .*\r\n//; '' },
    another => sub { ${ $_[0] } =~ s/(Urlstore-Map: \w+) 2/$1 1/; '' },
    deep    => sub { ${ $_[0] } = reply(200, "-\trejected\tdepth\n", $tag);
        '' },
    secret  => sub { ${ $_[0] } = reply(200, "-\trejected\trule:x\n", $tag);
        '' },
    inject  => sub { ${ $_[0] } = reply(200, 'ok', $tag,
        "Location: http://a\rX: 1"); '' },
    open    => sub { ${ $_[0] } = "HTTP/1.1 200 X\r\n$tag\r\n\r\n"
        . 'http://h.com/trunc'; '' },
    html    => sub { ${ $_[0] } = reply(200, '<html>', $tag); '' },
    much    => sub { ${ $_[0] } = reply(200, $many, $tag); '' },
    endless => sub { ${ $_[0] } = "HTTP/1.1 200 X\r\n$tag\r\n\r\n$many";
        'close' },
);


sub reply
{
    my ($status, $text, @headers) = @_;

    return join("\r\n", "HTTP/1.1 $status X", @headers,
        'Content-Length: ' . length($text // ''), '', $text // '');
}


sub faulty
{
    my ($request, $reply) = @_;

    my $accept = $request->{headers}{accept} // '';

    my ($word) = "$request->{target} $request->{body} $accept" =~ /fault-(\w+)/
        or return '';

    return $fault{$word}->($reply);
}


my @shards = map { UrlStore::FakeShard->new($_, \&faulty) } 0 .. 2;

spew($t->dir . '/map.json', map_text([qw(us_0 us_1 us_2)]));
$t->run(conf(map { ("us_$_" => $shards[$_]->port) } 0 .. 2));

my ($h0, $h1, $h2) = @host;

is($t->post('/add?summary=1', "http://$h2/\nhttp://$h0/a\nftp://x/\n"
    . "http://$h2/\nhttp://$h1/\nhttp://$h0/b\nhttp://secret/\n")->{body},
    id(2, 0) . "\tnew\thttp://$h2/\n0\tnew\thttp://$h0/a\n"
    . "-\tinvalid\tscheme\n" . id(2, 0) . "\tseen\thttp://$h2/\n"
    . id(1, 0) . "\tnew\thttp://$h1/\n1\tnew\thttp://$h0/b\n"
    . "-\trejected\trule:secret\n"
    . "# new=4 seen=1 unseen=0 errors=2 next_ids=0:0,1:" . id(1, 0) . ',2:'
    . id(2, 0) . " epochs=0:10,1:11,2:12\n",
    'a batch: the answers of three shards in the order of the input');

my ($first) = $shards[1]->requests;
is($first->{target}, '/add?summary=1&same=1', 'a shard is asked');
is($first->{body}, "http://$h1/\n", '  for its URLs');
like($first->{headers}{'urlstore-map'}, qr/^c{32} 1 1 [0-9a-f]{32}$/,
    '  by this map');
is($first->{headers}{host}, 'us_1', '  by the name of the node');
ok(!exists $first->{headers}{accept}, '  as text');

is_deeply([map { $json->decode($_) } split /\n/, $t->post(
    '/seen?sites=1&summary=1', qq({"url":"http://$h1/"}\n)
    . qq({"url":"http://$h0/c","ref":[1]}\n{"url":"ftp://x","ref":2}\n),
    'Content-Type' => 'application/x-ndjson')->{body}],
    [{ id => id(1, 0), status => 'seen', url => "http://$h1/",
        new_site => JSON::PP::false },
     { id => undef, status => 'unseen', url => "http://$h0/c", ref => [1] },
     { id => undef, status => 'invalid', reason => 'scheme', ref => 2 },
     { new => 0, seen => 1, unseen => 1, errors => 1,
        next_ids => { 0 => 2, 1 => id(1, 1) },
        epochs => { 0 => 10, 1 => 11 } }],
    'NDJSON, sites and refs');

is_deeply($json->decode($t->post('/seen', qq(["http://$h1/","/"]),
    'Content-Type' => 'application/json')->{body}),
    { results => [{ id => id(1, 0), status => 'seen', url => "http://$h1/" },
        { id => undef, status => 'invalid', reason => 'no-base' }],
      new => 0, seen => 1, unseen => 0, errors => 1,
      next_ids => { 1 => id(1, 1) }, epochs => { 1 => 11 } }, 'JSON');

is($t->post('/add?only=new', "http://$h0/a\nhttp://$h1/n\n")->{body},
    id(1, 1) . "\tnew\thttp://$h1/n\t1\n", 'only new');

is($t->post('/add?brief=1', "http://$h0/a\nhttp://$h1/n\n")->{body},
    "0\tseen\n" . id(1, 1) . "\tseen\n", 'brief');

is($t->post('/add', '')->{body}, '', 'no URL');

is($t->post('/only/add', "http://$h1/\n")->{body},
    id(1, 0) . "\tseen\thttp://$h1/\n", 'one endpoint');
is($t->post('/denied/add', "http://$h1/\n")->{status}, 403, 'access rules');
is($t->post('/limited/add', "http://$h1/\n")->{status}, 403, 'limit_except');
is($t->get("/limited/seen?url=http://$h1/")->{status}, 200,
    '  allows the others');

my $r;

# many parts: the answers do not fit the buffer of one reply

my @long = map { my $n = $_; map { "http://$host[$_]/" . 'l' x 1000 . $n }
    0 .. 2 } 1 .. 1100;
my $long = $t->post('/add', join '', map { "$_\n" } @long);
ok(join("\n", map { (split /\t/)[2] // '' } split /\n/, $long->{body})
    eq join("\n", @long), 'a batch in several parts');
is(scalar($shards[0]->requests(qr/llll/)), 2, '  which are as many as needed');
is($long->{headers}{'transfer-encoding'}, 'chunked', '  shown in slices');

# a shard that hangs is sent one of them

$r = $t->post('/quick/seen', join '', "http://$h2/fault-hang\n",
    map { "http://$h2/h$_\n" } 1 .. 9000);
is($r->{status}, 503, 'a part without a reply');
is(scalar($shards[2]->requests(qr{/h\d+\\n})), 1, '  is the last of its lane');

$r = $t->post('/quick/seen', join '', "http://$h2/fault-stall\n",
    map { "http://$h2/m$_\n" } 1 .. 9000);
like($r->{body}, qr{^-\tunseen\t.*stall\n(-\tunavailable\tshard:2\n){9000}$},
    'so is one whose reply stops in the middle');
is(scalar($shards[2]->requests(qr{/m\d+\\n})), 1, '  its parts are not sent');

# single

$r = $t->request('POST', "/add?url=http://$h2/s");
is($r->{status}, 201, 'a single URL');
is($r->{headers}{location}, 'url/' . id(2, 1101), '  with its place');
is_deeply($json->decode($r->{body}), { id => id(2, 1101), status => 'new',
    url => "http://$h2/s", next_id => id(2, 1101), epoch => 12 }, '  in JSON');
is($t->request('POST', '/add?url=ftp://x/')->{status}, 422, '  refused');
is($t->get('/seen?url=http://www.' . $h2 . '/s')->{body} =~ /"seen"/, 1,
    '  all spellings of a site are in one shard');

# ids

my $id = id(1, 0);
$r = $t->get("/url/$id");
is("$r->{status} $r->{body}", "200 http://$h1/\n", 'id to URL');
is($r->{headers}{etag}, '"e"', '  ETag');
is($r->{headers}{'cache-control'}, 'no-cache', '  Cache-Control');
is($t->request('GET', "/url/$id", undef, 'If-None-Match' => '"e"')
    ->{status}, 304, '  not modified');
is($t->request('HEAD', "/url/$id")->{headers}{'content-length'},
    length "http://$h1/\n", '  HEAD');
is($t->get('/url/' . id(1, 100000))->{status}, 404, 'not given yet');
is($t->get('/url/' . id(3, 0))->{status}, 503, 'a shard not on the map');
is($t->get('/url/' . '1152921504606846976')->{status}, 404, 'no shard at all');
is($t->get('/url/x')->{status}, 400, 'not an id');
is($t->request('DELETE', "/url/$id")->{status}, 204, 'deleted');
is($t->get("/url/$id")->{status}, 410, '  gone');
is($t->get('/url/' . id(1, 1) . ',' . id(2, 1))->{status}, 503,
    'lists of ids: these shards do not answer');
like($t->get('/cluster')->{body}, qr/"version": ?1/, 'the map');
is($t->get('/urls')->{status}, 503, 'nor do they list URLs');
is($t->get('/')->{status}, 200, 'the page');
like($t->get('/')->{body}, qr/function cluster\(s\)/, '  knows routers');
$r = $t->get('/log');
is($r->{status}, 501, 'a router has no log');
like(json($r->{body})->{detail}, qr/belongs to a shard/, '  it says who');
is($t->request('POST', '/add', "http://$h0/a\n",
    'Urlstore-Map' => 'c' x 32 . ' 0 1 ' . '0' x 32)->{status}, 421,
    'a router is not a shard');
is($t->get('/add')->{status}, 405, 'methods are those of a node');
is($t->get('/seen?x=1')->{status}, 400, 'and arguments');
is($t->get("/normalize?url=HTTP://$h2/%7e")->{status}, 200, 'normalize');

# a router in a subrequest

is($t->post('/auth/add', "http://$h0/a\n")->{body},
    "0\tseen\thttp://$h0/a\n", 'after an auth_request that asks the router');

# Idempotency-Key

$r = $t->request('POST', '/add', "http://$h0/once\n",
    'Idempotency-Key' => '"k1"');
is($r->{status}, 200, 'a key');
ok(!exists $r->{headers}{'idempotency-status'},
    '  of which shards know nothing: no promise');
is($t->request('POST', '/add', "http://$h0/once\n",
    'Idempotency-Key' => '"k')->{status}, 400, '  a malformed one');

# gzip

is($t->request('POST', '/seen', Compress::Zlib::memGzip("http://$h0/a\n"),
    'Content-Encoding' => 'gzip')->{body}, "0\tseen\thttp://$h0/a\n",
    'gzip');


# --- faults

my $ok = "http://$h0/a\n";
my $bad = "http://$h2/fault-";

is($t->post('/seen', "${bad}pieces\n$ok")->{body},
    "-\tunseen\t${bad}pieces\n0\tseen\t$ok",
    'a reply in chunks of a byte, with extensions and a trailer');

for my $word (grep { !/deep|later|open|secret|slow|stall|pieces/ }
    sort keys %fault)
{
    my $path = $word eq 'hang' ? '/quick/add' : '/add';
    my $r = $t->post($path, "$bad$word\n$ok");

    is($r->{status}, 200, "$word: a part is answered");
    my ($why, $status) = $word eq 'misled' ? ('shard', 503) : ('unknown', 504);

    is($r->{body}, "-\tunavailable\t$why:2\n0\tseen\thttp://$h0/a\n",
        '  and the rest named') if $word ne 'break';

    next if $word eq 'break';

    $r = $t->post($path, "$bad$word\n");
    is($r->{status}, $status, '  nothing is');
    is(json($r->{body})->{reason}, "$why:2", '  because of that shard');
    is(json($r->{body})->{processed}, $status == 503 ? 0 : undef,
        '  and what it has done is not known, or nothing');

    $r = $t->post($path =~ s/add/seen/r, "$bad$word\n");
    is($r->{status}, 503, '  a look-up does nothing');
    is(json($r->{body})->{reason}, 'shard:2', '  with this reason');
}

$r = $t->post('/add', "http://$h2/s\n${bad}break\n$ok");
is($r->{body}, id(2, 1101) . "\tseen\thttp://$h2/s\n"
    . "-\tunavailable\tunknown:2\n0\tseen\thttp://$h0/a\n",
    'a reply that breaks off counts as far as it goes');

is($t->get('/url/' . id(2, 0), Accept => "x/fault-$_")->{status}, 503,
    "$_: a part is not the answer about an id") for qw(cut interim much);
is($t->get('/quick/url/' . id(2, 0), Accept => 'x/fault-open')->{status}, 503,
    'open: nor is one without a length, whose end has not come');
is($t->get('/url/' . id(2, 0), Accept => 'x/fault-inject')->{status}, 503,
    'inject: a header with a control byte is not relayed');

$r = $t->post('/add', "${bad}switch\n$ok", Upgrade => 'x');
is($r->{status}, 200, 'a client that would upgrade');
like($r->{body}, qr/^-\tunavailable\tunknown:2\n0\tseen\t/,
    '  is not connected to the node');

$r = $t->post('/add?only=new', "${bad}error\n$ok");
is($r->{body}, "-\tunavailable\tunknown:2\t0\n", 'shown under only=new');

$r = $t->request('POST', "/add?url=${bad}error");
is($r->{status}, 504, 'a single one');
is($r->{headers}{'retry-after'}, 1, '  later');
is(json($r->{body})->{reason}, 'unknown:2', '  which shard');
is(json($r->{body})->{status}, 504, '  a problem');
is(json($r->{body})->{title}, 'Gateway Timeout', '  with its name');

# a lane's parts that were not sent are not done

$r = $t->post('/quick/add', join '', "${bad}hang\n$ok",
    map { "http://$h2/p$_\n" } 1 .. 9000);
is(scalar(() = $r->{body} =~ /\tunknown:2\n/g), 8192,
    'the part that was sent is of unknown outcome');
is(scalar(() = $r->{body} =~ /\tshard:2\n/g), 809, '  the next one is not');

$r = $t->request('DELETE', '/quick/url/' . id(2, 0), undef,
    Accept => 'x/fault-hang');
is($r->{status}, 504, 'a DELETE');
is(json($r->{body})->{reason}, 'unknown:2', '  which shard');

$r = $t->post("/add?url=${bad}deep");
is($r->{status}, 422, 'what a shard refuses and the router does not');
is(json($r->{body})->{reason}, 'depth', '  with its reason');
$r = $t->post("/add?url=${bad}secret");
is(json($r->{body})->{reason}, 'rule:x', '  a rule of the shard');
is($t->post('/add', "${bad}deep\n")->{body}, "-\trejected\tdepth\n",
    '  in a batch');

is($t->request('POST', '/add', "http://$h0/f\n{")->{body} =~ /\tnew\t/, 1,
    'text is text');
$r = $t->request('POST', '/add', '["http://' . $h0 . '/g", "http://' . $h2
    . '/g"', 'Content-Type' => 'application/json');
is($r->{status}, 400, 'a body that breaks off');
is(json($r->{body})->{processed}, 0, '  is applied as a whole');

my $cut = sub { substr Compress::Zlib::memGzip($_[0]), 0, -8 };

$r = $t->request('POST', '/add', $cut->("http://$h0/g\nhttp://$h2/g\n"),
    'Content-Encoding' => 'gzip');
is($r->{status}, 400, 'lines that break off');
is(json($r->{body})->{processed}, 2, '  what was before is applied');
is(json($r->{body})->{results}[1]{status}, 'new', '  with its answers');
$r = $t->request('POST', '/add', $cut->("${bad}error\nhttp://$h0/a\n"),
    'Content-Encoding' => 'gzip');
is($r->{status}, 400, 'one with an item that no shard has answered');
is(json($r->{body})->{results}[0]{status}, 'unavailable', '  shows which');

my $n = $shards[2]->requests(qr/fault-error/);
$t->post('/add', "${bad}error\n$ok");
is(scalar($shards[2]->requests(qr/fault-error/)), $n + 1,
    'no add is sent twice');

# streams that are reset

sub h2
{
    my ($method, $path, $body, %o) = @_;

    return UrlStore::H2->new('127.0.0.1', $t->port(2))
        ->request($method, $path, $body, %o);
}

is(h2('GET', '/app?fault-later')->{status}, 200, 'a redirect to the router');
my @workers = $t->worker_pids;
h2('GET', '/app?fault-later', undef, reset => 0.1);
is(h2('GET', '/app?fault-later')->{status}, 200, '  after one that was reset');
is_deeply([$t->worker_pids], \@workers, '  which has ended no worker');

$n = counted('calls', 2);
h2('POST', '/add', "http://$h0/reset\n${bad}slow\n", reset => 0.1);
ok(wait_until(5, sub { counted('calls', 2) > $n }),
    'an add goes on after its stream was reset');
is(h2('POST', '/add', "http://$h0/more\n")->{status}, 429,
    '  and what all shards have added is charged');

$shards[2]->stop;
$r = $t->post('/add', "http://$h2/s\n$ok");
is($r->{body}, "-\tunavailable\tshard:2\n0\tseen\thttp://$h0/a\n",
    'a shard that is down');
is($t->get('/url/' . id(2, 0))->{status}, 503, '  its ids are not denied');
is($t->get('/health')->{status}, 503, '  a shard without /health is not ready');
like($t->get('/metrics')->{body}, qr/shard="2"\} 0\n/,
    '  nor one that is down');

# the calls to each shard: this one did not answer all of them

sub counted
{
    my ($name, $shard) = @_;

    my ($n) = $t->get('/metrics')->{body} =~ /^urlstore_router_${name}_total
        \{cluster="crawl",shard="$shard"\}[ ]([\d.]+)$/mx;

    return $n;
}

my @before = map { [counted($_, 0), counted($_, 2)] }
    qw(calls failed_calls unanswered call_seconds);

$t->post('/add', "http://$h2/m\nhttp://$h2/n\n$ok");

my @more = map { my ($a, $b) = @{ shift @before };
    [counted($_, 0) - $a, counted($_, 2) - $b] }
    qw(calls failed_calls unanswered);

is_deeply(\@more, [[1, 1], [0, 1], [0, 2]],
    'metrics of each shard: calls, those that failed, items');
cmp_ok(counted('call_seconds', 0), '>', $before[0][0], '  and their time');

$t->stop;


# --- two nodes of a shard

my $tag0 = $tag =~ s/ 2 / 0 /r;
my @refusals = map {
    my $reply = $_;
    UrlStore::FakeShard->new(0, sub { ${ $_[1] } = $reply });
} reply(503, '', 'Urlstore-Refused: 1', $tag0),
    reply(503, '', 'Urlstore-Refused: 1'),
    reply(421, '', 'Urlstore-Refused: 1');
my $busy = UrlStore::FakeShard->new(0, sub {
    ${ $_[1] } = reply(503, '', $tag0);
});
my $broken = UrlStore::FakeShard->new(0, sub { 'hang' });

# as a TCP proxy in front of a node that is down

my $gone = UrlStore::FakeShard->new(0, sub { ${ $_[1] } = ''; 'close' });
my $good = UrlStore::FakeShard->new(0);
my $down = $t->port(5);

for my $case ([$refusals[0]->port, 'refuses', 200, 200],
    [$refusals[1]->port, 'is loading', 200, 200],
    [$refusals[2]->port, 'is a replica', 200, 200],
    [$down, 'is down', 200, 200], [$broken->port, 'hangs', 504, 200],
    [$gone->port, 'closes the connection', 504, 200],
    [$busy->port, 'has no answer', 504, 504])
{
    my ($port, $what, $first, $second) = @$case;

    spew($t->dir . '/map.json', map_text(['us_a us_b']));
    $t->run(conf(us_a => $port, us_b => $good->port));

    my $r = $t->post('/quick/add', "http://a.com/$port\n");
    is($r->{status}, $first, "a node that $what");
    is($t->post('/quick/add', "http://b.com/$port\n")->{status}, $second,
        '  and the next add') for 1 .. 4;
    is($t->post('/quick/seen', "http://a.com/$port\n")->{body} =~ /http/, 1,
        '  a look-up goes to the next one');
    $t->stop;
}

is(scalar($_->requests), 1, 'the node that answered is remembered')
    for @refusals;
is(scalar($_->requests), 1, 'the node that did not answer is left')
    for $broken, $gone;
is(scalar($busy->requests), 6, '  after a 503 it is not');
is(scalar($good->requests(qr{a\.com.*"/add})), 4,
    '  and no add is sent twice');

my $busier = UrlStore::FakeShard->new(0, sub {
    ${ $_[1] } = reply(503, '', $tag0);
});

$t->run(conf(us_a => $busy->port, us_b => $busier->port));
$t->get('/seen?url=http://a.com/');
is(scalar($busier->requests), 1, 'none of the nodes has an answer');
$t->post('/add', "http://c.com/\n");
is(scalar($busy->requests(qr/c\.com/)), 1, '  nor is one remembered');
$t->stop;

# what a shard says of a set is the router's answer, unless it has done a part

for my $case ([ 404, '{"processed":0}', 404 ], [ 409, '{"processed":0}', 409 ],
    [ 507, '{"processed":0}', 507 ],
    [ 404, '{"processed":1,"results":[]}', 504 ])
{
    my ($status, $text, $expected) = @$case;
    my $shard = UrlStore::FakeShard->new(0, sub {
        ${ $_[1] } = reply($status, $text, $tag0,
            'Content-Type: application/problem+json');
    });

    $t->run(conf(us_a => $shard->port, us_b => $down));
    $r = $t->post('/add?set=a', "http://a.com/\nhttp://b.com/\n");
    is($r->{status}, $expected, "a shard says $status, $text");
    is($t->request(PUT => '/set/a')->{status}, $status, '  to PUT, too');
    $t->stop;
}

# an answer that is cut says nothing of what was done

{
    my $shard = UrlStore::FakeShard->new(0, sub {
        ${ $_[1] } = substr reply(404, '{"processed":1,"results":[]}', $tag0,
            'Content-Type: application/problem+json'), 0, -14;
    });

    $t->run(conf(us_a => $shard->port, us_b => $down));
    is($t->post('/add?set=a', "http://a.com/\nhttp://b.com/\n")->{status}, 504,
        'a 404 that is cut');
    $t->stop;
}

# a node that hangs does not hold up the report

$t->run(conf(us_a => $broken->port, us_b => $down));
my ($slow, $report) = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1',
    PeerPort => $t->port) } 0, 1;
print $slow "POST /add HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"
    . "Content-Length: 14\r\n\r\nhttp://a.com/\n";
ok(wait_until(5, sub { $broken->requests(qr{"/add}) == 2 }), 'an add waits');
print $report "GET /health HTTP/1.0\r\n\r\n";
like(join('', <$report>), qr/"status":"unavailable"/,
    '  and /health does not wait as long');
ok(!IO::Select->new($slow)->can_read(0), '  which has no answer so far');
$t->stop;

my $unwell = UrlStore::FakeShard->new(0, sub {
    ${ $_[1] } = reply(503, '', $tag0) if $_[0]{target} =~ m{^/health};
});

$t->run(conf(us_a => $unwell->port, us_b => $good->port));
$t->get('/health');
is(scalar($good->requests(qr{"/health})), 1, 'the next node is asked, too');
$t->post('/add', "http://a.com/\n");
is(scalar($unwell->requests(qr{"/add})), 1, '  but not remembered for it');
$t->stop;


# --- what is reported of three shards, of which one is down

my @state = ('{"status":"ready","writable":true}',
    '{"status":"read-only","writable":false}');
my @three = map {
    my $n = $_;
    UrlStore::FakeShard->new($n, sub {
        ${ $_[1] } = reply($n ? 503 : 200, $state[$n], $tag =~ s/ 2 / $n /r)
            if $_[0]{target} =~ m{^/health};
        ${ $_[1] } = reply(200, '{"a":', $tag =~ s/ 2 / $n /r)
            if $_[0]{target} =~ m{^/stats};
    });
} 0, 1;

my $report_of = sub {
    spew($t->dir . '/map.json', map_text([qw(us_0 us_1 us_2)]));
    $t->run(conf(us_0 => $_[0], us_1 => $three[1]->port, us_2 => $down));
};

$report_of->($three[0]->port);
$r = $t->get('/health');
is($r->{status}, 200, 'one of three shards accepts');
is_deeply([ @{ $r->json }{qw(status writable)} ],
    ['degraded', JSON::PP::true()], '  which is what it reports');
is($t->get('/health?write=1')->{status}, 200, '  with write=1, too');
is($r->json->{shards}{1}{status}, 'read-only', '  of each shard its own words');
is_deeply($r->json->{shards}{2}, { status => 'unavailable', node => 'us_2',
    writable => JSON::PP::false(), address => "127.0.0.1:$down",
    reason => 'it could not be connected' }, '  or what is wrong with it');

$r = $t->get('/metrics')->{body};
is_deeply([ $r =~ /^urlstore_router_shard_(\w+\{.*\} \d)$/mg ], [ map {
    my ($word, @is) = @$_;
    map { qq($word\{cluster="crawl",shard="$_"} $is[$_]) } 0 .. 2;
} ['ready', 1, 1, 0], ['writable', 1, 0, 0] ], '  in metrics as well');
is(eval { $t->get('/stats')->json->{shards}{1}{reason} },
    'its answer is of no shard', 'a broken object is not shown');
$t->stop;

$report_of->($down);
$r = $t->get('/health');
is("$r->{status} @{[ $r->json->{writable} ]}", '200 0', 'none accepts');
is($t->get('/health?write=1')->{status}, 503, '  with write=1, too');
$t->stop;


# --- a cursor of a newer map

my @lists = map {
    my $n = $_;
    UrlStore::FakeShard->new($n, sub {
        ${ $_[1] } = reply(200, '# next=' . id($n, 5) . "\n",
            $tag =~ s/ 2 / $n /r) if $_[0]{target} =~ m{^/urls};
    });
} 0 .. 2;
my $cursor;

for my $nodes ([qw(us_0 us_1 us_2)], ['us_0']) {
    spew($t->dir . '/map.json', map_text($nodes));
    $t->run(conf(map { ("us_$_" => $lists[$_]->port) } 0 .. 2));
    $r = $t->get('/urls' . ($cursor ? "?cursor=$cursor" : ''));
    ($cursor) = $r->{body} =~ /cursor=(\S+)/;
    $t->stop;
}

is($r->{status}, 200, 'shards that the map lacks are not all that there are');
like($r->{body}, qr/ more=1 unavailable=1,2\n$/, '  but are named');


# --- one shard, of this module

# the shard has its uuid from its first start, and then the map is made

my $shard = <<'CONF';
urlstore_zone u 16m path=%%DIR%%/store cluster=crawl shard=0 node=us_0;
server {
    listen 127.0.0.1:%%PORT1%%;
    location / { urlstore_api u; urlstore_max_batch 2; }
}
CONF

unlink $t->dir . '/map.json';
$t->run(conf(us_0 => '%%PORT1%%') . $shard);

$r = $t->post('/add', "http://a.com/\n");
is($r->{status}, 503, 'there is no map');
is(json($r->{body})->{detail}, 'the cluster has no map so far', '  a problem');

ok(wait_until(10, sub {
    $t->client(1)->request('GET', '/health')->{status} == 200;
}), 'the shard has started');

my $uuid = json($t->client(1)->request('GET', '/stats')->{body})->{uuid};
my %uuid = (shards => { 0 => { uuid => $uuid, nodes => ['us_0'] } });

spew($t->dir . '/map.json', map_text(['us_0'], %uuid));

ok(wait_until(10, sub {
    $t->post('/add', "http://a.com/\n")->{status} == 200;
}), 'a map is there');

is($t->post('/add', "http://a.com/\nhttp://b.com/x\nhttp://www.a.com/\n")
    ->{body}, "0\tseen\thttp://a.com/\n1\tnew\thttp://b.com/x\n"
    . "0\tseen\thttp://a.com/\n", 'a batch');
is($t->get('/url/1')->{body}, "http://b.com/x\n", 'id to URL');
is($t->post('/seen?sites=1', "http://a.com/\n")->{body},
    "0\tseen\thttp://a.com/\tsite-known\n", 'sites');

$r = $t->get('/health');
is($r->{status}, 200, 'health');
is(json($r->{body})->{status}, 'ready', '  all shards are ready');
is(json($r->{body})->{shards}{0}{status}, 'ready', '  by their own words');
is(json($r->{body})->{writable}, JSON::PP::true, '  and writable');
is($t->get('/health', Accept => 'text/plain')->{body}, "ready\n", '  text');

$r = json($t->get('/stats')->{body});
is($r->{map}, 1, 'stats: the map');
is($r->{new}, 2, '  what the router has answered');
is($r->{shards}{0}{urls}, 2, '  the figures of the shard');

$r = $t->get('/metrics')->{body};
like($r, qr/^urlstore_router_shard_ready\{cluster="crawl",shard="0"\} 1$/m,
    'metrics: a shard');
like($r, qr/^urlstore_router_urls_total\{cluster="crawl",status="new"\} 2$/m,
    '  answers');


# --- the map, while nginx runs

spew($t->dir . '/map.new', map_text(['us_0'], %uuid,
    version => 2, slots => [['0', 0], ['1-4095', 0]]));
rename $t->dir . '/map.new', $t->dir . '/map.json';

ok(wait_until(10, sub {
    my $r = $t->post('/seen', "http://a.com/\n");
    return $t->error_log =~ /cluster "crawl": map of version 2/
        && $r->{status} == 200;
}), 'a new map is read, and the shard has it');

spew($t->dir . '/map.new', map_text(['us_0'], version => 1));
rename $t->dir . '/map.new', $t->dir . '/map.json';

ok(wait_until(5, sub {
    $t->post('/seen', "http://a.com/\n");
    return $t->error_log =~ /map\.json" is not used/;
}), 'an old one is not used');
is($t->post('/seen', "http://a.com/\n")->{status}, 200, '  all goes on');

$t->stop;


# --- what nginx -t refuses

sub refused
{
    my ($conf, $why, $what) = @_;

    my ($rc, $out) = $t->check($conf);

    isnt($rc, 0, $what);
    like($out, $why, '  with its reason');
}

spew($t->dir . '/map.json', map_text(['us_0']));

my $cluster = 'urlstore_cluster crawl %%DIR%%/map.json;';
my $up = 'upstream us_0 { server 127.0.0.1:%%PORT1%%; }';
my $server = sub { 'server { listen 127.0.0.1:%%PORT%%; location / {'
    . " $_[0] } }" };
my $route = $server->('urlstore_route crawl;');

is(($t->check("$cluster$up$route"))[0], 0, 'a router');
refused("$cluster$route", qr/no upstream "us_0" for a node of its map/,
    'no upstream');
refused("$cluster upstream us_0 { server 127.0.0.1:1; server 127.0.0.1:2; }"
    . $route, qr/"us_0" must have one server with one address/,
    'two servers');
refused("$up$route", qr/urlstore_cluster "crawl" must be declared above/,
    'no cluster');
refused("$cluster$up" . $server->('urlstore_route crawl when=now;'),
    qr/invalid parameter "when=now" of urlstore_route/, 'a parameter');
refused("$cluster$up" . $server->('urlstore_route crawl timeout=x;'),
    qr/invalid value "x" of parameter "timeout"/, 'a time');
refused("$cluster$up" . $server->("urlstore_route crawl $_->[0];"),
    qr/$_->[1]/, $_->[0]) for
    ['timeout=0', 'invalid value "0" of parameter "timeout"'],
    ['connect=1s connect=2s', 'duplicate parameter "connect"'],
    ['endpoint=add endpoint=seen', 'duplicate parameter "endpoint"'],
    ['endpoint=log', 'has an endpoint that a router does not have'];
refused("$cluster$up" . $server->('urlstore_route crawl endpoint=x;'),
    qr/has an unknown endpoint/, 'an endpoint');
refused("$cluster$up" . $server->('proxy_pass http://us_0; '
    . 'urlstore_route crawl;'), qr/another handler/, 'another handler');
refused("$cluster$up" . $server->('urlstore_route crawl; urlstore_route '
    . 'crawl;'), qr/is duplicate/, 'two of them');
refused("$cluster$up urlstore_zone crawl 16m;$route",
    qr/"crawl", which is routed here, needs another name/, 'a zone\'s name');
refused("$cluster$up$route urlstore_zone crawl 16m;",
    qr/duplicate urlstore_zone "crawl"/, 'a zone\'s name further down');

spew($t->dir . '/map.json', map_text(['us_0'], norm => 'crawler/2'));
refused("$cluster$up$route", qr/normalized as "crawler\/2", this nginx can/,
    'URLs that this nginx cannot normalize so');
