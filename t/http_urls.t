#!/usr/bin/perl

# From ids back to URLs, and what is known of sites: /url, /urls, /prefix,
# /site, /mark, /normalize.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

use IO::Socket::INET;

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 64m marks=visited,todo sites=on;
urlstore_zone big 64m;
client_max_body_size 8m;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /big/ { urlstore_api big; urlstore_max_batch 100000; }
    location /ids/ { urlstore_url u; }
    location = /ids { urlstore_url u; }
    location /bare { urlstore_api u; }
    location ~ ^/re/(\d+)$ { urlstore_url u; }
    location = /feed { urlstore_urls u; }
    location /m/ { urlstore_mark u; }
    ssi_types *;
    location = /none {
        ssi on;
        return 200 '(<!--# include virtual="/urls?from=999999" -->)';
    }
    location = /parts {
        ssi on;
        return 200 '<!--# include virtual="/big/urls?limit=100000" -->,
                    <!--# include virtual="/big/urls?limit=100000" -->';
    }
}
CONF

my @text = ('Content-Type' => 'text/plain');
my @json = ('Content-Type' => 'application/json');
my $epoch = $t->stats->{epoch};
my ($r, $s);

$t->post('/add', join("\n", 'http://a.com/', 'http://www.a.com/b?x=1',
    'https://www.b.com/', 'http://a.com/d/e/f', 'http://c.com:8080/x'), @text);

# --- /url/ID

$r = $t->get('/url/1');
is($r->{body}, "http://a.com/b?x=1\n", 'a URL');
is($r->{headers}{'content-type'}, 'text/plain', 'as text');
like($r->{headers}{etag}, qr/^"[0-9a-f]{32}-[0-9a-f]+-1"$/, 'ETag');
is($r->{headers}{'cache-control'}, 'no-cache', 'nothing durable without path=');
is($t->get('/url/1', 'If-None-Match' => $r->{headers}{etag})->{status}, 304,
    'not modified');
is($t->request('HEAD', '/url/1')->{headers}{'content-length'}, 19, 'HEAD');
is_deeply($t->get('/url/1', Accept => 'application/json')->json,
    { id => 1, url => 'http://a.com/b?x=1' }, 'as JSON');
isnt($t->get('/url/1', Accept => 'application/json')->{headers}{etag},
    $r->{headers}{etag}, 'whose ETag is another');
$r = $t->get('/url/2?redirect=1');
is("$r->{status} $r->{headers}{location}", '302 https://www.b.com/',
    'a redirect');

is($t->get("/url/$_")->{status}, 404, "no such id: $_")
    for 5, '99999999999999999999', '1' x 200;
is($t->get("/url/$_")->{status}, 400, "no id: $_")
    for '01', '-1', '1x', '%31%00', '1.0', '1,x', ',1', '1,', '00';
is($t->get('/ids/1')->{body}, "http://a.com/b?x=1\n", 'a location of its own');
is($t->get('/re/1')->{body}, "http://a.com/b?x=1\n", 'a regular expression');
is($t->get('/bare/url/1')->{body}, "http://a.com/b?x=1\n",
    'a location without a slash');
is($t->get('/bareurl/1')->{status}, 404, 'which has no other names');

for ([ 'POST', '/url/1', 'GET, HEAD, DELETE' ],
    [ 'PUT', '/url', 'GET, HEAD, POST, DELETE' ],
    [ 'OPTIONS', '/url/1', 'GET, HEAD, DELETE' ],
    [ 'POST', '/site/a.com', 'GET, HEAD' ])
{
    my ($method, $path, $allow) = @$_;

    $r = $t->request($method, $path, '');
    is("$r->{status} $r->{headers}{allow}", "405 $allow", "$method $path");
}

# --- many

is($t->get('/url/1,9,0')->{body}, "1\thttp://a.com/b?x=1\n9\t-\tunknown\n"
    . "0\thttp://a.com/\n", 'many');
for ([ "1\n9\n", @text ], [ "1\r\n\n9", @text ],
    [ "1\n9", 'Content-Type' => 'application/x-www-form-urlencoded' ])
{
    my ($body, @type) = @$_;
    is($t->post('/url', $body, @type)->{body},
        "1\thttp://a.com/b?x=1\n9\t-\tunknown\n", 'by a body');
}
for ('[1,9]', '{"ids": [1, 9]}') {
    is_deeply($t->post('/ids', $_, @json)->json, { results => [
        { id => 1, url => 'http://a.com/b?x=1', status => 'ok' },
        { id => 9, url => undef, status => 'unknown' } ] }, "by JSON: $_");
}
is_deeply([ map { json($_) } split /\n/, $t->post('/url',
    qq({"id":1}\n{"id":2}\n), 'Content-Type' => 'application/x-ndjson')
    ->{body} ], [ { id => 1, url => 'http://a.com/b?x=1', status => 'ok' },
    { id => 2, url => 'https://www.b.com/', status => 'ok' } ], 'by NDJSON');
for ([ '7,x,10' => 'x' ], [ '7,x' => 'x' ], [ '7,' => '' ], [ ',7' => '' ],
    [ '7,,8' => '' ], [ '7,' . 9 x 33 => 9 x 33 ])
{
    my ($ids, $bad) = @$_;
    like($t->get("/url/$ids")->json->{detail}, qr/^"$bad" is not an id/,
        "the first of $ids that is none");
}
is($t->get('/url/0,' . 9 x 32)->{body}, "0\thttp://a.com/\n" . 9 x 32
    . "\t-\tunknown\n", 'the longest');
is($t->post('/url', "1\nx\n", @text)->{status}, 400, 'one that is none');
is($t->post('/url', '[1.5]', @json)->{status}, 400, 'a fraction');
is($t->post('/url', "1\n01\n", @text)->json->{processed}, 1, 'after the first');

# --- DELETE

is($t->forget('/url/3')->{status}, 204, 'forgotten');
is($t->forget('/url/3')->{status}, 204, 'twice is the same');
is($t->get('/url/3')->{status}, 410, 'gone for ever');
is($t->get('/url/3,0')->{body}, "3\t-\tdeleted\n0\thttp://a.com/\n",
    'among others');
is($t->get('/seen?url=http://a.com/d/e/f')->json->{status}, 'unseen',
    'unseen again');
is($t->post('/add?url=http://a.com/d/e/f', '')->json->{id}, 5, 'a new id');
is($t->get('/url/3')->{status}, 410, 'and the old one stays gone');
is($t->forget('/url/77')->{status}, 404, 'never given');
is($t->forget('/url/0,1')->{status}, 400, 'one at a time');

# --- marks

is($t->post('/mark/visited', "0\nhttp://www.a.com/b?x=1\nhttp://no.com/\n77\n"
    . "3\n007\nfoo\n", @text)->{body},
    "0\tset\thttp://a.com/\n1\tset\thttp://a.com/b?x=1\n"
    . "-\tunknown\thttp://no.com/\n-\tunknown\t-\n3\tdeleted\t-\n"
    . "-\tinvalid\tjson\n-\tinvalid\tno-base\n", 'marks by id and URL');
is($t->post('/mark/visited?brief=1', "0\n", @text)->{body}, "0\tset\n",
    'setting twice is the same');
is_deeply($t->post('/m/todo?summary=1', '[2,"https://b.com/","2",3,9]', @json)
    ->json, { results => [
    { id => 2, status => 'set', url => 'https://www.b.com/' },
    { id => 2, status => 'set', url => 'https://www.b.com/' },
    { id => undef, status => 'invalid', reason => 'no-base' },
    { id => 3, status => 'deleted', url => undef },
    { id => undef, status => 'unknown', url => undef } ], set => 2, clear => 0,
    unknown => 1, deleted => 1, errors => 1,
    member_ids(6, $epoch, 1) },      # the shard that has them all
    'marks by JSON');
same_urls($t->get('/urls?mark=visited')->{body}, "0\thttp://a.com/\n"
    . "1\thttp://a.com/b?x=1\n", 'marked ones');
same_urls($t->get('/urls?mark=!visited')->{body}, "2\thttps://www.b.com/\n"
    . "4\thttp://c.com:8080/x\n5\thttp://a.com/d/e/f\n", 'the others');
is($t->request('DELETE', '/mark/visited', "0\n", @text)->{body},
    "0\tclear\thttp://a.com/\n", 'cleared');
is($t->post('/mark/visited?clear=1&url=http://a.com/b%3Fx%3D1', '')
    ->json->{status}, 'clear', 'cleared by URL');
is($t->post('/mark/visited?id=1', '')->json->{status}, 'set', 'set by id');
is($t->post('/mark/visited', 'id=1', 'Content-Type' =>
    'application/x-www-form-urlencoded')->json->{status}, 'set',
    '  that of a form');
is($t->post('/mark/visited', '{"id":"1"}', 'Content-Type' =>
    'application/json')->json->{status}, 'set', '  a string of JSON');
same_urls($t->get('/urls?mark=visited')->{body},
    "1\thttp://a.com/b?x=1\n", 'one');
$t->forget('/url/1');
same_urls($t->get('/urls?mark=visited')->{body}, '',
    'a deleted one loses its marks');
is($t->post('/mark/nope', "0\n", @text)->{status}, 404, 'no such mark');
is($t->get('/mark/visited')->{headers}{allow}, 'POST, DELETE', 'Allow');

# --- /urls

same_urls($t->get('/urls?limit=2&summary=1')->{body},
    "0\thttp://a.com/\n2\thttps://www.b.com/\n# next=3\n", 'limit and cursor');
is($t->get('/urls?from=3&summary=1')->{body},
    "4\thttp://c.com:8080/x\n5\thttp://a.com/d/e/f\n# next=6\n", 'from');
is($t->get('/urls?from=99&summary=1')->{body}, "# next=99\n",
    'from beyond the end');
same_urls($t->get('/feed?deleted=1&limit=2')->{body},
    "0\thttp://a.com/\n1\t-\n", 'deleted ones shown');
same_urls($t->get("/urls?site=$_")->{body},
    "0\thttp://a.com/\n5\thttp://a.com/d/e/f\n", "of the site $_")
    for 'a.com', 'www.a.com', 'A.COM';
same_urls($t->get('/urls?site=c.com')->{body}, '',
    'the port is part of a site');
same_urls($t->get('/urls?site=c.com:8080')->{body}, "4\thttp://c.com:8080/x\n",
    'with its port');
same_urls($t->get('/urls?site=nope.com&summary=1')->{body}, "# next=6\n",
    'an unknown site');
is($t->get('/urls?site=a%2Fb')->{status}, 400, 'no site');
same_urls($t->get('/urls?prefix=http://a.com/d')->{body},
    "5\thttp://a.com/d/e/f\n", 'prefix');
same_urls($t->get('/urls?new_sites=1')->{body}, "0\thttp://a.com/\n"
    . "2\thttps://www.b.com/\n4\thttp://c.com:8080/x\n", 'first of each site');
$r = $t->get('/urls?limit=1', Accept => 'application/x-ndjson');
is($r->{body} =~ s/"cursor":"[\w-]+","more":true/"next":1/r,
    qq({"id":0,"url":"http://a.com/"}\n{"next":1}\n), 'NDJSON');
$r = $t->get('/urls?deleted=1&limit=2', Accept => 'application/json')->json;
is_deeply($r->{results}, [{ id => 0, url => 'http://a.com/' },
    { id => 1, url => undef, status => 'deleted' }], 'JSON');
is_deeply([map { $r->{$_} } qw(next more)], routed()
    ? [undef, JSON::PP::true] : [2, undef], '  where it goes on');
is($t->get("/urls?$_")->{status}, 400, $_)
    for 'from=x', 'limit=0', 'limit=x', 'mark=nope,x', 'from=-1',
    'from=99999999999999999999';
is($t->get('/urls?mark=nope')->{status}, 404, 'no such mark');
is($t->request('HEAD', '/urls')->{status}, 200, 'HEAD');

# --- /prefix

$s = 'http://a.com/d/e/f';
is($t->get("/prefix?url=$_")->json->{id}, 5, "prefix of $_")
    for $s, "$s/", "$s/g", "$s?q", "$s?q=/x", "$s/g/h?i/j#k",
    'http://www.a.com/d/e/f/g';
is($t->get("/prefix?url=$_")->json->{id}, 0, "prefix of $_")
    for 'http://a.com/d/e/fg', 'http://a.com/', 'http://a.com/?x',
    'http://a.com', 'http://a.com/x//y/';
is($t->get("/prefix?url=$_")->json->{status}, 'unseen', "none of $_")
    for 'http://aa.com/', 'http://c.com:8080/', 'http://c.com/x';
is($t->get('/prefix?url=g/h&base=http://a.com/d/e/f/')->json->{url}, $s,
    'with a base');
is($t->get("/prefix?url=http://a.com/" . '/' x 500)->json->{id}, undef,
    'at most 64 probes');
is($t->get("/prefix?url=$s/g", Accept => 'text/plain')->{body},
    "5\tseen\t$s\n", 'as text');
is($t->get('/prefix?url=http://aa.com/', Accept => 'text/plain')->{body},
    "-\tunseen\t-\n", 'none, as text');
is_deeply($t->get('/prefix?url=http://aa.com/')->json, { id => undef,
    status => 'unseen', url => undef }, 'and as JSON');
is($t->get('/prefix')->{status}, 400, 'no URL');
is($t->get('/prefix?url=x')->{status}, 422, 'a bad one');

# --- /site

is_deeply($t->get("/site/$_")->json, { site => 'b.com', first => 2, last => 2,
    urls => 1, spelling => 'www.b.com', www => JSON::PP::true },
    "site $_") for 'b.com', 'www.b.com', 'WWW.B.Com';
is($t->get('/site/a.com')->json->{www}, JSON::PP::false, 'without www');
is($t->get('/site/c.com:8080')->json->{first}, 4, 'with a port');
is($t->get('/site/c.com')->{status}, 404, 'an unknown one');
is($t->get('/site')->{status}, 400, 'none');
is($t->get('/site/a%20b')->{status}, 400, 'no host');

$t->post('/add', "https://www.q\"q.com/\n", @text);
$r = $t->get('/site/q%22q.com')->json;
is("$r->{site} $r->{spelling}", 'q"q.com www.q"q.com', 'a host with a quote');

# --- /normalize

$r = $t->get('/normalize?explain=1&url=' . uri_escape(
    'HTTP://U:p@Foo.com:80/a/../b/%7ec.html?x=1&#f'))->json;
is($r->{url}, 'http://foo.com/b/~c.html?x=1', 'normalized');
is_deeply([ @$r{qw(scheme host port path file query)} ],
    [ 'http', 'foo.com', undef, '/b/~c.html', 'c.html' =~ s/^/~/r, 'x=1' ],
    'its parts');
cmp_ok(scalar @{ $r->{steps} }, '>', 2, 'steps');
is($r->{steps}[-1]{after}, $r->{url}, 'the last step ends with the URL');
is($t->get('/normalize?url=http://a.com:81/')->json->{port}, 81, 'a port');
is($t->get('/normalize?url=http://a.com/')->json->{steps}, undef,
    'no steps unless asked for');
is($t->get('/normalize?profile=whatwg&url=' . uri_escape('http://a.com/?#f'))
    ->json->{url}, 'http://a.com/?#f', 'another profile');
is($t->get('/normalize?profile=x&url=http://a.com/')->{status}, 400,
    'an unknown one');
is($t->get('/normalize?url=ftp:x')->json->{reason}, 'scheme', 'refused');
is($t->get('/normalize?url=../b&base=http://a.com/c/d',
    Accept => 'text/plain')->{body}, "http://a.com/b\n", 'as text');
is($t->get('/normalize?explain=1&url=http://a%00b%ff/%ff')->{status}, 422,
    'bytes of any kind');

# --- only an id's URL may be kept by a cache

for ('/url/0,1', qw(/seen?url=http://a.com/ /seen?url=http://zz.com/ /seen
    /url/x /url/99 /url/3 /urls /prefix?url=http://a.com/x /site/a.com
    /site/nope.com /normalize?url=http://a.com/ /normalize?url=x /health /stats
    /metrics / /openapi.yaml /nothing))
{
    is($t->get($_)->{headers}{'cache-control'}, 'no-store', "no-store: $_");
}

is($t->request('HEAD', '/seen?url=http://a.com/')->{headers}{'cache-control'},
    'no-store', 'HEAD, too');
is($t->post($_, "http://a.com/\n", @text)->{headers}{'cache-control'},
    'no-store', "POST $_, too") for '/seen', '/add', '/nothing';
is($t->request('PUT', '/add', 'x')->{headers}{'cache-control'}, 'no-store',
    'and a 405');
like($t->get('/metrics')->{body}, routed() ? qr/^urlstore_router_urls_total\{/m
    : qr/^urlstore_requests_total\{zone="u",endpoint="page"\} [1-9]/m,
    'the page is counted, by a name');

# --- a large export, to a slow client, while others are served

my @urls = map { "http://big.com/" . 'x' x 60 . "/$_" } 0 .. 49999;
$t->post('/big/add?brief=1', join("\n", @urls), @text);

$r = $t->get('/big/urls?limit=100000');
same_urls($r->{body}, join('', map { "$_\t$urls[$_]\n" } 0 .. $#urls),
    'all of it');
is($r->{headers}{'transfer-encoding'}, routed() ? undef : 'chunked',
    'streamed by a node, collected by a router');

my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
    PeerPort => $t->port, Timeout => 5);
setsockopt($sock, 1, 8, pack 'i', 32768);                 # SO_RCVBUF
print $sock "GET /big/urls?limit=100000 HTTP/1.0\r\n\r\n";
$sock->flush;

is($t->get('/url/0')->{status}, 200, 'others are served') for 1 .. 20;

my $all = '';
while (sysread($sock, $all, 65536, length $all)) { }
is(length($all =~ s/^.*?\r\n\r\n//sr), length $r->{body},
    'a slow client gets it all');

# clients that leave in the middle

for (1 .. 20) {
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $t->port);
    print $s "GET /big/urls?limit=100000 HTTP/1.1\r\nHost: a\r\n\r\n";
    $s->flush;
    sysread($s, my $some, 1000);
    close $s;
}

same_urls($t->get('/big/urls?limit=1')->{body}, "0\t$urls[0]\n",
    'and all is well');

# parts of a page: an empty list, and long ones that are made at the same time

my $list = $t->get('/big/urls?limit=100000')->{body};

is($t->get('/none')->{body}, '()', 'a page of an empty list');
ok($t->get('/parts')->{body} =~ /^\Q$list\E,\s+\Q$list\E$/, 'of long ones');
