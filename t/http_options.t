#!/usr/bin/perl

# Each option of a zone and each directive of an endpoint, by what it does.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 16m;
urlstore_zone crawler 16m profile=crawler www=first schemes=keep mode=store;
urlstore_zone clean 16m profile=crawler-clean;
urlstore_zone whatwg 16m profile=whatwg;
urlstore_zone aggressive 16m profile=aggressive;
urlstore_zone keep 16m www=keep sites=on;
urlstore_zone strip 16m www=strip;
urlstore_zone schemes 16m schemes=first sites=off;
urlstore_zone marks 16m huge=on
    marks=a,b,c,d,e,f,g,h,i,j,k,l,m,n,visited-1,To_Do;
urlstore_zone rules 16m;
urlstore_rewrite rules ^http://loop\.test/(.*) http://loop.test/x$1;
urlstore_rewrite rules ^http://once\.test/(.*) http://two.test/$1;
urlstore_zone million 64m marks=m;
client_max_body_size 8m;

server {
    listen 127.0.0.1:%%PORT%%;

    location /u/ { urlstore_api u; }
    location /crawler/ { urlstore_api crawler; }
    location /clean/ { urlstore_api clean; }
    location /whatwg/ { urlstore_api whatwg; }
    location /aggressive/ { urlstore_api aggressive; }
    location /keep/ { urlstore_api keep; }
    location /strip/ { urlstore_api strip; }
    location /schemes/ { urlstore_api schemes; }
    location /marks/ { urlstore_api marks; }
    location /rules/ { urlstore_api rules; }

    location /million/ {
        urlstore_api million;
        urlstore_max_batch 100000;
        client_max_body_size 8m;
    }

    location = /1/add { urlstore_add u; }
    location = /1/seen { urlstore_seen u; }
    location /1/id { urlstore_url u; }
    location = /1/feed { urlstore_urls u; }
    location = /1/longest { urlstore_prefix u; }
    location /1/host/ { urlstore_site u; }
    location /1/set/ { urlstore_mark marks; }
    location = /1/canon { urlstore_normalize u; }
    location = /1/alive { urlstore_health u; }
    location = /1/numbers { urlstore_stats u; }
    location = /1/scrape { urlstore_metrics u; }
    location = /1/look { urlstore_page u; }
    location = /1/api.yaml { urlstore_openapi u; }

    location = /hash {
        return 200 "$urlstore_site_hash $urlstore_path_hash";
        urlstore_seen u;
    }
}
CONF

my @text = ('Content-Type' => 'text/plain');
my $r;

# --- profiles: what each makes of the same URLs

my $in = 'HTTP://User@Www.A.test:80/a/./b/../%7Ec//index.html?b=2&a=1'
    . '&utm_source=x#f';
my %out;

for my $zone (qw(crawler clean whatwg aggressive)) {
    my $line = $t->post("/$zone/add", "$in\n", @text)->{body};

    like($line, qr/^0\tnew\thttp:/, "$zone takes it");
    $out{$zone} = (split /[\t\n]/, $line)[2];

    my $named = $zone eq 'clean' ? 'crawler-clean' : $zone;
    is($t->get("/u/normalize?profile=$named&url=" . uri_escape($in))
        ->json->{url}, $out{$zone}, '  and /normalize?profile= agrees');
    is($t->get("/$zone/normalize?url=" . uri_escape($in))->json->{url},
        $out{$zone}, '  as its own does');
    is($t->get("/$zone/url/0")->{body}, "$out{$zone}\n", '  it comes back');
    like($t->get("/$zone/stats")->json->{normalization}, qr/^\Q$named\E\//,
        '  and /stats names it');
}

is($out{crawler}, 'http://www.a.test/a/~c//index.html?b=2&a=1&utm_source=x',
    'crawler');
is($out{clean}, 'http://www.a.test/a/~c//index.html?b=2&a=1', 'crawler-clean');
is($out{whatwg}, 'http://User@www.a.test/a/%7Ec//index.html?b=2&a=1'
    . '&utm_source=x#f', 'whatwg');
is(keys %{{ reverse %out }}, 4, 'no two are the same')
    or diag(explain(\%out));

# --- www and schemes

my $spellings = join '', map { "$_\n" } 'http://www.w.test/1',
    'http://w.test/1', 'https://w.test/1', 'http://w.test:8080/1';

for ([ crawler => 'http://www.w.test/1', 'http://www.w.test/1',
        'https://www.w.test/1', 'http://w.test:8080/1' ],
    [ keep => 'http://www.w.test/1', 'http://w.test/1', 'https://w.test/1',
        'http://w.test:8080/1' ],
    [ strip => 'http://w.test/1', 'http://w.test/1', 'https://w.test/1',
        'http://w.test:8080/1' ],
    [ schemes => 'http://www.w.test/1', 'http://www.w.test/1',
        'http://www.w.test/1', 'http://w.test:8080/1' ])
{
    my ($zone, @want) = @$_;
    my %known;

    is($t->post("/$zone/add", $spellings, @text)->{body} =~ s/^\d+\t//mgr,
        join('', map { ($known{$_}++ ? 'seen' : 'new') . "\t$_\n" } @want),
        "$zone: spellings of a site");
}

# a site's spelling is that of its first URL, for ever

is($t->post('/u/add', "http://www.site.test/\n", @text)->{body},
    "0\tnew\thttp://www.site.test/\n", 'the first URL of a site');
is($t->forget('/u/url/0')->{status}, 204, 'deleted');
is($t->post('/u/add', "https://site.test/x\nhttp://site.test/\n", @text)
    ->{body}, "1\tnew\thttps://www.site.test/x\n"
    . "2\tnew\thttp://www.site.test/\n", 'the spelling stays, in any scheme');
is($t->post('/u/seen', "http://site.test/y\n", @text)->{body},
    "-\tunseen\thttp://www.site.test/y\n", 'also of what is unseen');

is_deeply([ sort keys %{ $t->get('/keep/site/w.test')->json } ],
    [ qw(first last site spelling urls www) ], 'sites=on counts');
is_deeply([ sort keys %{ $t->get('/schemes/site/w.test')->json } ],
    [ qw(first site spelling www) ], 'sites=off does not');

# --- marks, as many as there can be

$t->post('/marks/add', "http://m.test/\nhttp://m.test/2\n", @text);

for my $mark ('a' .. 'n', 'visited-1', 'To_Do') {
    $t->post("/marks/mark/$mark", "1\n", @text);
    is($t->get("/marks/urls?mark=$mark")->{body}, "1\thttp://m.test/2\n",
        "mark $mark");
}

is_deeply($t->get('/marks/stats')->json->{marks},
    [ 'a' .. 'n', 'visited-1', 'To_Do' ], 'and /stats names them');
is($t->post('/marks/mark/todo', "1\n", @text)->{status}, 404,
    'their case counts');

# --- rules

is($t->post('/rules/add', "http://loop.test/\nhttp://once.test/a\n", @text)
    ->{body}, "-\trejected\trewrite-loop\n0\tnew\thttp://two.test/a\n",
    'a rewriting without end is refused');
is($t->post('/rules/add?url=http://loop.test/', '')->json->{reason},
    'rewrite-loop', 'a single one, too');

# --- each endpoint by a directive of its own

my ($id) = $t->post('/1/add', "http://own.test/a/b\n", @text)->{body}
    =~ /^(\d+)\tnew/;

for ([ 'GET', '/1/seen?url=http://own.test/a/b', qr/"id":$id,/ ],
    [ 'GET', "/1/id/$id", qr{^http://own\.test/a/b$} ],
    [ 'GET', "/1/id/$id,77", qr/^77\t-\tunknown$/m ],
    [ 'POST', '/1/id', qr{^$id\thttp://own\.test/a/b$}, "$id\n" ],
    [ 'GET', "/1/feed?from=$id", qr{^$id\thttp://own\.test/a/b$} ],
    [ 'GET', '/1/longest?url=http://own.test/a/b/c', qr/"id":$id,/ ],
    [ 'GET', '/1/host/own.test', qr/"first":$id,/ ],
    [ 'POST', '/1/set/a', qr{^0\tset\thttp://m\.test/$}, "0\n" ],
    [ 'DELETE', '/1/set/a', qr{^0\tclear\thttp://m\.test/$}, "0\n" ],
    [ 'GET', '/1/canon?url=HTTP://x', qr{"url":"http://x/"} ],
    [ 'GET', '/1/alive', qr/"status":"ready"/ ],
    [ 'GET', '/1/numbers', qr/"zone":"u"/ ],
    [ 'GET', '/1/scrape', qr/^urlstore_urls\{zone="u"\} \d+$/m ],
    [ 'GET', '/1/look', qr/<form/ ],
    [ 'GET', '/1/api.yaml', qr/^openapi: 3\.1/ ])
{
    my ($method, $path, $want, $body) = @$_;

    $r = $t->request($method, $path, $body);
    is($r->{status}, 200, "$method $path");
    like($r->{body}, $want, '  answers');

    $r = $t->request('HEAD', $path);
    is($r->{status}, $method eq 'GET' ? 200 : $path =~ /id/ ? 400 : 405,
        '  HEAD');
}

is($t->forget("/1/id/$id")->{status}, 204, 'DELETE');
is($t->get("/1/id/seen")->{status}, 400, 'and no other endpoint is there');

for ([ '/1/look', 'text/html; charset=utf-8' ],
    [ '/1/api.yaml', 'application/yaml' ],
    [ '/1/scrape', 'text/plain; version=0.0.4; charset=utf-8' ],
    [ '/1/numbers', 'application/json' ])
{
    is($t->get($_->[0])->{headers}{'content-type'}, $_->[1],
        "Content-Type of $_->[0]");
}

# --- hashes: the command's are the same

for my $url ('http://www.hash.test/a?b=c', 'https://hash.test:8443/') {
    my ($site, $path) = split /\t/, `build/urlstore hash '$url'`;

    is($t->get('/hash?url=' . uri_escape($url))->{body}, "$site $path",
        "hashes of $url");
}

is($t->get('/hash')->{body}, ' ', 'none without a URL');

# --- one request of /urls examines a million ids

for my $k (0 .. 10) {
    my $n = $k * 100_000;
    $t->post('/million/add?brief=1', join('', map { "http://m.test/$_\n" }
        $n .. $n + 99_999), @text);
}

is($t->get('/million/urls?mark=m&summary=1')->{body}, "# next=1100000\n",
    'ids that have no container of a set are passed over at once');
is($t->get('/million/urls?mark=m&from=7', Accept => 'application/x-ndjson')
    ->{body}, qq({"next":1100000}\n), 'in NDJSON');
$t->post('/million/mark/m', "1099999\n", @text);
is($t->get('/million/urls?mark=m&from=1000000')->{body},
    "1099999\thttp://m.test/1099999\n", 'where something is found');
$r = $t->get('/million/urls?limit=2000000&summary=1');
is($r->{body} =~ tr/\n//, 1_000_001, 'a million lines, and no more');
like($r->{body}, qr/\n999999\t[^\n]+\n# next=1000000\n$/, 'then the cursor');
