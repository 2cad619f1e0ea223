#!/usr/bin/perl

# Who may do what: access rules of locations against every spelling of a path,
# pages of other sites, and requests that say what is not there.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 16m marks=m;
server {
    listen 127.0.0.1:%%PORT%%;
    server_name a.test *.wild.test .dot.test end.* "~^re\d\.test$"
                in.*.test *.both.* .two.*;

    location / { urlstore_api u; }
    location = /add { deny all; }
    location /mark/ { deny all; }

    location /api/ { urlstore_api u; }
    location = /api/add { deny all; }
    location /bare { urlstore_api u; }
    location = /bare/add { deny all; }
    location /one { urlstore_add u; }
    location = /one { deny all; }
    location ~ ^/re/(add|also)$ { urlstore_add u; }
    location ~ ^/regex { urlstore_add u; }
    location ~ ^/re2/add$ { urlstore_add u; }
    location ~ ^/re2/url { urlstore_url u; }
    location = /regex { deny all; }
    location /in/ { urlstore_api u; }

    location ~ ^/id/\d+$ {
        limit_except GET { allow all; }
        urlstore_url u;
    }

    location ~ ^/no/\d+$ {
        limit_except GET { deny all; }
        urlstore_url u;
    }

    location /checked/ { auth_request /known; urlstore_api u; }
    location = /known {
        internal;
        set $args url=http://known.test/;
        urlstore_seen u;
    }

    location /ui/ {
        urlstore_allow_origin https://ui.test http://localhost:3000;
        urlstore_api u;
        location /ui/no/ { urlstore_allow_origin off; urlstore_api u; }
    }
    location /any/ { urlstore_allow_origin *; urlstore_api u; }
}
server {
    listen 127.0.0.1:%%PORT1%%;
    merge_slashes off;
    location / { urlstore_api u; }
    location = /add { deny all; }
    location /api/ { urlstore_api u; }
    location = /api/add { deny all; }
}
CONF

my @text = ('Content-Type' => 'text/plain');
my $r;

is($t->post('/in/add', "http://known.test/\n", @text)->{status}, 200, 'added');

# --- in a location by a regular expression, the path is its own

is($t->post('/re2/add', "http://known.test/\n", @text)->{body},
    "0\tseen\thttp://known.test/\n", 'an endpoint without a tail');
is($t->post('/re2/url', "0\n", @text)->{body}, "0\thttp://known.test/\n",
    'a method without one');
is($t->get('/re2/url/0')->{status}, 200, '  and one with');
is($t->post('/re2/url/', "0\n", @text)->{status}, 404, '  a slash too many');

# --- no other spelling of a path passes the rule of its location

for my $path ('/add', '/add/', '/add//', '//add', '/add/.', '/./add', '/%61dd',
    '/add%2F', '/%2Fadd', '/x/../add', '/add?summary=1', '/add/?summary=1',
    '/add/x', '/ADD', '/add;x', '/add%20', '/add%00', '/add%09', '/add.',
    '/api/add', '/api/add/', '/api//add', '/api/./add/', '/bare/add',
    '/bare/add/', '/bare//add', '/one', '/one/', '/one//', '/one/x', '/regex',
    '/regex/', '/re/add/', '/mark/m', '/mark/m/', '//mark/m')
{
    for my $port (0, 1) {
        next if $port && $path =~ m{bare|one|re/|regex|mark};

        my $status = $t->client($port)->request('POST', $path,
            "http://passed.test/$path\n", @text)->{status};

        like($status, qr/^40[034]$/, "POST $path" . ($port ? ', slashes' : ''));
    }
}

is($t->get('/in/seen?url=http://passed.test//add')->json->{status}, 'unseen',
    'nothing was added');
is($t->stats('/in')->{next_id}, 1, '  at all');

# --- and no endpoint answers with a slash too many

for my $path (qw(add seen url urls prefix site mark normalize health stats
    metrics openapi.yaml))
{
    is($t->get("/in/$path/")->{status}, 404, "/$path/");
    is($t->post("/in/$path/", "0\n", @text)->{status}, 404, '  POST');
}

is($t->get('/in/')->{status}, 200, 'the page has its slash');
is($t->get('/bare')->{status}, 301, 'and leads to it');

# --- DELETE in a location by a regular expression, with limit_except

is($t->post('/in/add', "http://gone.test/\n", @text)->{status}, 200, 'added');
is($t->get('/id/1')->{body}, "http://gone.test/\n", 'GET');
is($t->forget('/no/1')->{status}, 403, 'DELETE that may not');
is($t->forget('/id/1')->{status}, 204, 'and one that may');

# --- auth_request by /seen, whatever the main request has

is($t->get('/checked/url/0')->{body}, "http://known.test/\n", 'auth_request');
is($t->post('/checked/seen', "http://known.test/\n", @text)->{body},
    "0\tseen\thttp://known.test/\n", 'of a request with a body');

my @parts = ("http://known.test/\n");
is($t->post('/checked/seen', sub { shift @parts }, @text)->{body},
    "0\tseen\thttp://known.test/\n", 'a chunked one');

# --- pages of other sites

my $host = '127.0.0.1:' . $t->port;
my $n = 2;

for ([ undef, 200, 'none' ],
    [ "http://$host", 200, 'its own' ],
    [ "HTTP://$host", 200, '  in other letters' ],
    [ "https://$host", 200, '  behind a TLS proxy' ],
    [ 'http://evil.test', 403, 'a foreign one' ],
    [ 'null', 403, 'a file, or a sandbox' ],
    [ '', 403, 'an empty one' ],
    [ 'http://127.0.0.1', 403, 'another port' ],
    [ "http://$host.evil.test", 403, 'its own as a prefix' ],
    [ "http://evil.test:" . $t->port, 403, 'another host' ],
    [ "ftp://$host", 403, 'another scheme' ])
{
    my ($origin, $want, $what) = @$_;
    my @h = (Host => $host, defined $origin ? (Origin => $origin) : (), @text);

    $r = $t->post('/in/add', "http://o.test/$n\n", @h);
    is($r->{status}, $want, "Origin: $what");
    is($r->{headers}{'access-control-allow-origin'}, undef, '  no CORS');
    $n++ if $want == 200;
    is($t->stats('/in')->{next_id}, $n, '  is nothing added?')
        if $want == 403;

    is($t->request('DELETE', '/in/url/1', undef, @h)->{status},
        $want == 200 ? 204 : 403, '  DELETE');
    is($t->post('/in/mark/m', "0\n", @h)->{status}, $want, '  POST /mark');
    is($t->post('/in/seen', "http://o.test/\n", @h)->{status}, 200,
        '  what changes nothing is answered');
}

like($t->post('/in/add', "x\n", Origin => 'http://evil.test', @text)
    ->json->{detail}, qr{"http://evil\.test" may not change the store},
    'the problem names it');
is($t->post('/in/add', "http://o.test/80\n", Host => 'a.test:80',
    Origin => 'http://a.test', @text)->{status}, 200, 'the default port');

# Origin and Host are both the client's: a name that its owner leads to us is
# none of ours

for ([ 'evil.example', 403 ], [ 'a.test', 200 ], [ 'A.Test', 200 ],
    [ 'x.wild.test', 200 ], [ 'wild.test', 403 ], [ 'evilwild.test', 403 ],
    [ 'dot.test', 200 ], [ 'x.dot.test', 200 ], [ 'xdot.test', 403 ],
    [ 'end.example', 200 ], [ 'end', 403 ], [ 're7.test', 200 ],
    [ 'in.x.test', 403 ], [ 'x.both.test', 403 ], [ 'two.test', 403 ],
    [ 'rex.test', 403 ], [ 'localhost', 200 ], [ '10.0.0.1', 200 ],
    [ '10.0.0.1.evil.example', 403 ], [ '[::1]', 200 ], [ '_', 403 ])
{
    my ($name, $want) = @$_;
    my $here = "$name:" . $t->port;

    is($t->post('/in/add', "http://o.test/\n", Host => $here,
        Origin => "http://$here", @text)->{status}, $want,
        "a page of $name, whose name leads here");
}

# allowed ones

for ([ 'https://ui.test', '/ui', 1 ], [ 'http://localhost:3000', '/ui', 1 ],
    [ 'https://ui.test', '/ui/no', 0 ], [ 'http://ui.test', '/ui', 0 ],
    [ 'https://ui.test:444', '/ui', 0 ], [ 'http://x.test', '/any', 1 ],
    [ 'null', '/any', 1 ])
{
    my ($origin, $path, $may) = @$_;
    my @h = (Origin => $origin, 'Access-Control-Request-Method' => 'POST',
        'Access-Control-Request-Headers' => 'content-type');

    $r = $t->request('OPTIONS', "$path/add", undef, @h);
    is($r->{status}, $may ? 204 : 403, "a preflight from $origin to $path");
    is($r->{headers}{'access-control-allow-origin'}, $may ? $origin : undef,
        '  allowed?');
    next if !$may;

    like($r->{headers}{'access-control-allow-methods'}, qr/\bPOST\b/,
        '  methods');
    like($r->{headers}{'access-control-allow-headers'}, qr/Content-Type/,
        '  headers');

    for (map { [ @$_ ] } [ 'POST', "$path/add", "http://c.test/\n" ],
        [ 'POST', "$path/url", "0\n" ], [ 'GET', "$path/url/0" ],
        [ 'GET', "$path/url/99999" ], [ 'GET', "$path/urls" ],
        [ 'DELETE', "$path/url/99999" ])
    {
        $r = $t->request($_->[0], $_->[1], $_->[2], Origin => $origin, @text);
        is($r->{headers}{'access-control-allow-origin'}, $origin,
            "  $_->[0] $_->[1]: $r->{status}");
        like($r->{headers}{vary}, qr/Origin/, '  differs by Origin');
    }

    my @vary = $t->http("GET $path/url/0 HTTP/1.0\r\nHost: a\r\n\r\n")
        =~ /^Vary: (.*)\r$/mg;

    is("@vary", 'Accept, Origin', '  in one line');
}

is($t->request('OPTIONS', '/ui/add')->{status}, 405, 'no preflight');

for ('localhost', 'http://', 'https://a.test/', '://x') {
    my ($rc, $out) = $t->check(<<"CONF");
urlstore_zone u 16m;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; urlstore_allow_origin $_; }
}
CONF
    ok($rc, "urlstore_allow_origin $_");
    like($out, qr/invalid origin "\Q$_\E" of urlstore_allow_origin/,
        '  is refused');
}

# --- arguments that are not there

for ([ 'GET', '/in/urls?form=5', 'form', 'from cursor limit site prefix set '
        . 'mark older new_sites deleted times summary' ],
    [ 'GET', '/in/urls?from=0&Limit=5', 'Limit', 'from' ],
    [ 'POST', '/in/add?sumary=1', 'sumary', 'url base' ],
    [ 'POST', '/in/seen?id=1', 'id', 'url base' ],
    [ 'GET', '/in/seen?url=x&%62ase=y', '%62ase', 'url base' ],
    [ 'GET', '/in/url/0?brief=1', 'brief', 'redirect' ],
    [ 'DELETE', '/in/url/0?force=1', 'force', 'redirect' ],
    [ 'POST', '/in/url?x=1', 'x', 'redirect' ],
    [ 'GET', '/in/prefix?u=x', 'u', 'url base' ],
    [ 'GET', '/in/site/a.test?urls=1', 'urls', 'none' ],
    [ 'POST', '/in/mark/m?sites=1', 'sites', 'url id base brief summary' ],
    [ 'POST', '/in/set/m?clear=1', 'clear',
        'url id base brief summary remove' ],
    [ 'DELETE', '/in/set/m?x=1', 'x', 'none' ],
    [ 'GET', '/in/normalize?url=x&explian=1', 'explian', 'url base profile' ],
    [ 'GET', '/in/health?x=1', 'x', 'write' ],
    [ 'GET', '/in/stats?x=1', 'x', 'none' ],
    [ 'GET', '/in/metrics?x=1', 'x', 'none' ],
    [ 'GET', '/in/?x=1', 'x', 'q' ],
    [ 'GET', '/in/openapi.yaml?x=1', 'x', 'none' ],
    [ 'GET', '/in/urls?' . 'y' x 500, 'y' x 40, 'from' ])
{
    my ($method, $path, $name, $known) = @$_;

    $r = $t->request($method, $path, $method eq 'GET' ? undef : '', @text);
    is($r->{status}, 400, "$method " . substr $path, 0, 60);
    like($r->json->{detail},
        qr/^unknown query argument "\Q$name\E"; allowed are: \Q$known\E/,
        '  names it, and those that there are');
}

# --- values that are none

for ([ 'POST', '/in/add?only="old"', 400,
        'unknown "only" value ""old""; use new' ],
    [ 'GET', '/in/normalize?url=x&profile=best', 400,
        'unknown profile "best"; use crawler, crawler-clean, whatwg '
        . 'or aggressive' ],
    [ 'GET', '/in/urls?limit=0', 400,
        'invalid "limit" "0"; a decimal number, 1 or more, is expected' ],
    [ 'GET', '/in/urls?from=-1', 400,
        'invalid "from" "-1"; a decimal number, 0 or more, is expected' ],
    [ 'GET', '/in/urls?site=a%20b', 400,
        'invalid "site" "a b"; HOST[:PORT] is expected' ],
    (map { [ @$_, '"007" is not an id; a decimal number of at most 32 digits, '
        . 'without a leading zero, is expected' ] }
        [ 'GET', '/in/url/007', 400 ], [ 'GET', '/in/url/7,007', 400 ],
        [ 'DELETE', '/in/url/007', 400 ]),
    [ 'POST', '/in/url', 400, '"x" is not an id; a decimal number of at most '
        . '32 digits, without a leading zero, is expected' ],
    [ 'GET', '/in/url/99999', 404, 'the id 99999 was not given yet' ],
    [ 'DELETE', '/in/url/' . 9 x 50, 404,
        'the id ' . 9 x 40 . ' was not given yet' ],
    [ 'GET', '/in/site/a%20b', 400,
        'invalid host "a b"; /site/HOST[:PORT] is expected' ],
    [ 'POST', '/in/add', 415, 'unsupported Content-Type "image/\"png\""; use '
        . 'text/plain, application/json, application/x-ndjson or '
        . 'application/x-www-form-urlencoded',
        'Content-Type' => 'image/\"png\"' ],
    [ 'POST', '/in/add', 415, 'unsupported Content-Encoding "'
        . 'x' x 100 . '"; use gzip or identity', @text,
        'Content-Encoding' => 'x' x 101 ])
{
    my ($method, $path, $status, $detail, @h) = @$_;

    $r = $t->request($method, $path, $method eq 'GET' ? undef : 'x',
        @h ? @h : @text);
    is("$r->{status} " . $r->json->{detail}, "$status $detail",
        "$method $path: $status");
}

# each argument of each endpoint is there once

for my $path ('/add', '/seen', '/url/0', '/urls', '/prefix', '/mark/m',
    '/claim', '/normalize', '/health', '/set/m', '/')
{
    my $method = $path =~ m{add|mark|claim|set} ? 'POST' : 'GET';
    my @known = split ' ', $t->request($method, "/in$path?none=1",
        $method eq 'GET' ? undef : '', @text)->json->{detail}
        =~ s/.*allowed are: //r;

    is_deeply([ map {
        $r = $t->request($method, "/in$path?$_=1&$_=1",
            $method eq 'GET' ? undef : '', @text);
        "$r->{status} " . $r->json->{detail};
    } @known ], [ map { qq(400 the query argument "$_" is given twice) }
        @known ], "$path: one that is there twice");
}

for ('set=m&mark=!m', 'mark=!m&set=m') {
    $r = $t->get("/in/urls?$_");
    is("$r->{status} " . $r->json->{detail}, '400 the query has "set" and '
        . '"mark"; one of them is allowed', $_);
}

$r = $t->get('/in/urls?summary');
is("$r->{status} " . $r->json->{detail},
    '400 the query argument "summary" has no value', 'one without a value');

# a flag is 1; 0 and nothing are as without it

my %flags = ('/in/add' => [ qw(brief summary sites times same stored) ],
    '/in/seen' => [ qw(brief summary sites times same stored) ],
    '/in/url' => [ 'times' ],
    '/in/url/0' => [ qw(redirect times) ],
    '/in/urls' => [ qw(new_sites deleted times summary) ],
    '/in/mark/m' => [ qw(brief summary clear) ],
    '/in/set/m' => [ qw(brief summary remove) ],
    '/in/claim' => [ qw(brief summary clear) ],
    '/in/normalize' => [ 'explain' ], '/in/health' => [ 'write' ]);

for my $path (sort keys %flags) {
    for my $flag (@{ $flags{$path} }) {
        my $get = $path =~ /urls|url.0|health|normalize/;
        my @refused = map {
            my $r = $t->request($get ? 'GET' : 'POST', "$path?$flag=$_",
                $get ? undef : "http://known.test/\n", @text);

            "$r->{status} " . (($r->json // {})->{detail} // '');
        } qw(2 false 01 %31);

        is_deeply(\@refused, [ map {
            "400 the query argument \"$flag=$_\" is a flag; its value is 1 or 0"
        } qw(2 false 01 %31) ], "$path: $flag is 1 or 0");
    }
}

same_urls($t->get("/in/urls?limit=1&summary=$_->[0]")->{body},
    "0\thttp://known.test/\n$_->[1]", "summary=$_->[0]")
    for [ 1, "# next=1\n" ], [ 0, '' ], [ '', '' ];

same_urls($t->get('/in/urls?&from=0&&limit=1&')->{body},
    "0\thttp://known.test/\n", 'empty ones are none');
