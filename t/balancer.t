#!/usr/bin/perl

# conf/balancer.conf as it stands, before a primary with conf/urlstore.conf and
# two replicas with conf/replica.conf: every call reaches the right node,
# however it is spelled; CORS; nodes that are down, or behind.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;
use UrlStore::Conf;
use UrlStore::Replica qw(level differs);

my @text = ('Content-Type' => 'text/plain');
my @json = ('Content-Type' => 'application/json');
my @other = ('X-Client' => '192.0.2.1');

my $writer = UrlStore::Conf::run('urlstore', log => 1);

ok($writer->ready(write => 1), 'the primary');

my @readers = map { UrlStore::Conf::run('replica',
    ports => { 8081 => $writer->port }) } 1, 2;

ok(level($writer, $_), 'a replica') for @readers;

my $t = UrlStore::Conf::run('balancer', ports => { 8081 => $writer->port,
    8082 => $readers[0]->port, 8083 => $readers[1]->port });

my @urls = @{ corpus('html_news_blogs_pages', 3000) };
my $added = post('/add', @urls);

is(scalar(() = $added =~ /\n/g), 3000, 'added through the balancer');
cmp_ok(urls($writer), '>', 1000, 'to the writer');

like($t->get('/url/7')->{body}, qr|^https?://|,
    'an id that no replica may have yet comes from the primary');
is($t->get('/url/99999999')->{status}, 404, 'one that nobody has');


# --- the replicas follow

my $n = urls($writer);

for my $reader (@readers) {
    ok(level($writer, $reader), 'follows');
    is(urls($reader), $n, 'and has them all');
    is(differs($writer, $reader, 'visited'), '', 'under the same ids');
}

is(post('/seen', @urls), $added =~ s/\tnew\t/\tseen\t/gr,
    'replicas know what the primary knows');


# --- each call

my $requests = requests(@readers);

for ([ GET => '/seen?url=http://x.example/' ], [ GET => '/urls?limit=3' ],
    [ POST => '/seen', '["http://x.example/"]' ], [ POST => '/url', '[0, 1]' ],
    [ GET => '/url/0' ], [ HEAD => '/url/0' ], [ GET => '/url/0,1,2' ],
    [ GET => '/prefix?url=http://x.example/a' ], [ GET => '/site/x.example' ],
    [ GET => '/normalize?explain=1&url=http://x.example/' ])
{
    my ($method, $path, $body) = @$_;
    my $r = $t->request($method, $path, $body, @json, @other);

    ok($r->{status} == 200 || $path =~ /site/ && $r->{status} == 404,
        "for everybody: $method $path") or diag($r->{status});
}

cmp_ok(requests(@readers) - $requests, '>=', 9, 'the replicas answered');

is($t->get($_, @other)->{status}, 200, "of the writer: $_")
    for qw(/ /stats /metrics /health /openapi.yaml);
is($t->get('/stats')->json->{uuid}, $writer->get('/stats')->json->{uuid},
    'in its name');
is($t->post('/mark/visited', '0', @text)->{body} =~ s/\thttp.*//r,
    "0\tset\n", 'a mark');
is($t->request(PUT => '/set/crawl-7', '', @text)->{status}, 201, 'a set');
is($t->post('/set/crawl-7', '0', @text)->{body} =~ s/\thttp.*//r, "0\tin\n",
    'a member');
is($t->forget('/set/crawl-7/0')->{status}, 200, 'taken out');
is($t->get("/$_")->{status}, 200, "/$_") for 'set', 'set/crawl-7', 'erase';
is($t->forget('/url/5')->{status}, 204, 'DELETE');
is($writer->get('/url/5')->{status}, 410, 'at the primary');

for my $reader (@readers) {
    ok(level($writer, $reader), 'both follow');
    is($reader->get('/url/5')->{status}, 410, 'a delete at a replica');
    is($reader->get('/urls?mark=visited')->{body},
        $writer->get('/urls?mark=visited')->{body}, 'and the mark');
}

is($t->get('/url/5')->{status}, 410, 'and at the balancer');


# --- writes, by others and in every spelling

my $before = content($writer, @readers);

for ([ POST => '/add', "http://w.example/\n" ],
    [ POST => '/mark/visited', "1\n" ], [ DELETE => '/mark/visited', "0\n" ],
    [ PUT => '/set/crawl-8', '' ], [ DELETE => '/set/crawl-7', '' ],
    [ POST => '/erase', "0\n" ], [ DELETE => '/url/0', '' ])
{
    my ($method, $path, $body) = @$_;
    my @got;

    for my $spelling ($path, UrlStore::Conf::spellings($path)) {
        my $r = raw($method, $spelling, $body, '192.0.2.1');

        push @got, "$spelling: $r" if $r !~ /^HTTP\S+ 4\d\d /;
    }

    is("@got", '', "refused in every spelling: $method $path");
}

is(content($writer, @readers), $before, 'nothing has changed');

# a crawler's are the primary's, or refused

my (%status, @wrong);

for my $spelling ('/add', UrlStore::Conf::spellings('/add')) {
    my ($status) = raw('POST', $spelling, "http://s.example/\n", '10.1.2.3')
        =~ /^HTTP\S+ (\d+)/;

    $status{$status}++;
    push @wrong, "$spelling $status" if $status !~ /^(?:200|400|40[45])$/;
}

raw('POST', $_, "1\n", '10.1.2.3')
    for UrlStore::Conf::spellings('/mark/visited');
raw('DELETE', $_, '', '10.1.2.3') for UrlStore::Conf::spellings('/url/9');

is("@wrong", '', 'a crawler is answered 200, or that there is no such call');
cmp_ok($status{200}, '>=', 5, 'nginx knows some spellings');
ok(level($writer, $_) && differs($writer, $_, 'visited') eq '',
    'a replica has what the primary has') for @readers;
is(requests_of('add', @readers), 0, 'no write has reached a replica');


# --- CORS

my $page = 'https://search.example.com';

for (qw(GET/seen POST/seen GET/url/7 POST/url GET/urls GET/prefix
    GET/site/a.example GET/normalize))
{
    my ($method, $path) = m{^(\w+)(/.*)$};

    my $r = $t->request('OPTIONS', $path, undef, @other, Origin => $page,
        'Access-Control-Request-Method' => $method,
        'Access-Control-Request-Headers' => 'content-type');
    my %h = %{ $r->{headers} };

    is($r->{status}, 204, "preflight of $method $path");
    is($h{'access-control-allow-origin'}, $page, '  the origin is allowed');
    like($h{'access-control-allow-methods'} // '', qr/\bPOST\b/,
        '  so is the method') if $method eq 'POST';
    like($h{'access-control-allow-headers'} // '', qr/\bContent-Type\b/,
        '  and the header') if $method eq 'POST';

    $r = $t->request('OPTIONS', $path, undef, @other,
        Origin => 'https://elsewhere.example');
    ok(!$r->{headers}{'access-control-allow-origin'}, '  no other origin is');
}

for ([ GET => '/url/7' ], [ GET => '/url/99999999' ], [ GET => '/urls' ],
    [ POST => '/url', '[7, 8]' ], [ POST => '/seen', '["http://x.example/"]' ],
    [ GET => '/seen?url=no' ])
{
    my ($method, $path, $body) = @$_;

    my $r = $t->request($method, $path, $body, @json, @other,
        Origin => $page);
    is($r->{headers}{'access-control-allow-origin'}, $page,
        "an answer for the page: $method $path $r->{status}");
    like($r->{headers}{'access-control-expose-headers'}, qr/ETag.*Retry/,
        '  with its headers');
    $r = $t->request($method, $path, $body, @json, @other,
        Origin => 'https://elsewhere.example');
    ok(!$r->{headers}{'access-control-allow-origin'}, 'but for no other page');
}

for (qw(POST/add POST/mark/visited DELETE/url/7)) {
    my ($method, $path) = m{^(\w+)(/.*)$};

    my $r = $t->request('OPTIONS', $path, undef, Origin => $page,
        'Access-Control-Request-Method' => $method);

    ok(!$r->{headers}{'access-control-allow-origin'}
        || ($r->{headers}{'access-control-allow-methods'} // '') !~ /$method/,
        "no page may $method $path");
}


# --- nodes that are down

my $one = $urls[17];
my $last = urls($writer) - 1;

$writer->stop;

is($t->post('/add', "http://lost.example/\n", @text)->{status}, 502,
    'writer down: no adds');
is($t->get("/url/$_")->{status}, 200, "reads go on: /url/$_") for 0, 1, 10;
is(post('/seen', @urls[0 .. 9]), seen(0 .. 9), 'and /seen');

for ('/url/99999999', '/url/1,99999999', '/seen?url=http://unknown.example/') {
    my $r = $t->get($_, @other, Origin => $page);

    is("$r->{status} $r->{headers}{'content-type'}",
        '503 application/problem+json', "who knows of what is unknown? $_");
    is($r->json->{status}, 503, '  in JSON');
    is($r->{headers}{'retry-after'}, 1, '  later');
    is($r->{headers}{'access-control-allow-origin'}, $page, '  for pages');
}

$writer->start;
ok($writer->ready(write => 1), 'the writer is back');
like(post('/add', 'http://back.example/'), qr/\tnew\t/, 'and adds');

$readers[0]->stop;
is(scalar(grep { $t->get("/url/$_")->{status} != 200 } 10 .. 59), 0,
    'one reader is enough');
is(post('/seen', @urls[0 .. 9]), seen(0 .. 9), 'also for batches');

$readers[1]->stop;
is(scalar(grep { $t->get("/url/$_")->{status} != 200 } 10 .. 59), 0,
    'no reader: the writer answers');
is(post('/seen', @urls[0 .. 9]), seen(0 .. 9), 'batches, too');
like(post('/add', 'http://still.example/'), qr/\tnew\t/, 'and goes on');

$writer->stop;
is($t->get('/url/0')->{status}, 503, 'no node, no answer');
is($t->post('/add', "http://lost.example/\n", @text)->{status}, 502,
    'to anything');

$t->allow(qr/connect\(\) failed/, qr/no live upstreams/);


sub post
{
    my ($path, @urls) = @_;

    return $t->post($path, join('', map { "$_\n" } @urls), @text)->{body};
}


# what /seen says of lines that were added

sub seen
{
    return join '', ($added =~ s/\tnew\t/\tseen\t/gr =~ /(.*\n)/g)[@_];
}


sub urls
{
    return $_[0]->get('/stats')->json->{urls};
}


# what nodes have: URLs, deleted ones, marks

sub content
{
    return join '|', map { my $node = $_; map { $node->get("/urls?$_")->{body} }
        'deleted=1&limit=1000000', 'mark=visited&limit=1000000' } @_;
}


# requests that nodes have answered, but for those of this test

sub requests
{
    my $sum = 0;

    for my $node (@_) {
        my $metrics = $node->get('/metrics')->{body};

        $sum += $1 while $metrics
            =~ /^urlstore_requests_total\{.*"(?!stats|metrics).*"\} (\d+)/mg;
    }

    return $sum;
}


# requests of one endpoint that nodes have got

sub requests_of
{
    my ($endpoint, @nodes) = @_;
    my $sum = 0;

    for my $node (@nodes) {
        my ($n) = $node->get('/metrics')->{body}
            =~ /^urlstore_requests_total\{.*"$endpoint"\} (\d+)/m;

        $sum += $n;
    }

    return $sum;
}


sub raw
{
    my ($method, $path, $body, $client) = @_;

    return http($t, "$method $path HTTP/1.1\r\nHost: localhost\r\n"
        . "Connection: close\r\nX-Client: $client\r\n"
        . "Content-Type: text/plain\r\nContent-Length: " . length($body)
        . "\r\n\r\n$body");
}
