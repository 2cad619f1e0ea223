#!/usr/bin/perl

# /add and /seen: inputs, outputs, options, single and batch, as the tables of
# the contract have them.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 16m;
urlstore_zone small 16m;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /limits/ {
        urlstore_api small;
        urlstore_max_url 40;
        urlstore_max_batch 3;
        urlstore_max_body 200;
    }
}
CONF

my @text = ('Content-Type' => 'text/plain');
my @json = ('Content-Type' => 'application/json');
my @ndjson = ('Content-Type' => 'application/x-ndjson');
my @form = ('Content-Type' => 'application/x-www-form-urlencoded');

my $health = $t->get('/health')->json;
my $epoch = (routed() ? $health->{shards}{0} : $health)->{epoch};
my $r;

cmp_ok($epoch, '<', 2**53, 'epoch is a number that JavaScript can hold');

# --- text

$r = $t->post('/add', "http://a.com/\nhttp://www.a.com/b\r\n\n \nfoo\n"
    . "http://a.com", @text);
is($r->{status}, 200, 'a batch is 200');
is($r->{headers}{'content-type'}, 'text/plain', 'text for text');
is($r->{body}, "0\tnew\thttp://a.com/\n1\tnew\thttp://a.com/b\n"
    . "-\tinvalid\tno-base\n-\tinvalid\tno-base\n0\tseen\thttp://a.com/\n",
    'one answer a line, empty lines skipped, the last without its end');

is($t->post('/add', "http://a.com/\n")->{body}, "0\tseen\thttp://a.com/\n",
    'no content type is text');
is($t->post('/seen', "http://a.com/\nhttp://a.com/no\n", @text)->{body},
    "0\tseen\thttp://a.com/\n-\tunseen\thttp://a.com/no\n", '/seen');
is($t->post('/seen', "http://a.com/no\n", @text)->{body},
    "-\tunseen\thttp://a.com/no\n", '/seen adds nothing');
is($t->post('/add', "http://one.com/\n", @text)->{status}, 200,
    'one line is a batch, too');
is($t->post('/add', '', @text)->{body}, '', 'an empty batch');

# --- reasons

$r = $t->post('/add', join("\n", 'ftp://a/', 'http://a b/', 'http://a:99999/',
    "http://a.com/\x{ff}", 'foo', 'http://a.com/' . 'x' x 8192, 'http://'),
    @text);
like($r->{body}, qr/^-\tinvalid\tscheme\n-\tinvalid\thost\n-\tinvalid\tport\n
    \d+\tnew\t.*\n-\tinvalid\tno-base\n-\tinvalid\tlength\n
    -\tinvalid\thost\n$/x, 'reasons');

# --- options

$r = $t->post('/add?sites=1&summary=1', "http://a.com/c\nhttp://b.com/\n"
    . "http://a.com/\nx\n", @text);
my ($first) = $r->{body} =~ /^(\d+)/;
is($r->{body}, "$first\tnew\thttp://a.com/c\tsite-known\n" . ($first + 1)
    . "\tnew\thttp://b.com/\tsite-new\n0\tseen\thttp://a.com/\tsite-known\n"
    . "-\tinvalid\tno-base\t-\n# new=2 seen=1 unseen=0 errors=1"
    . summary_ids($first, $epoch) . "\n", 'sites and summary');

is($t->post('/seen?brief=1', "http://a.com/\nx\n", @text)->{body},
    "0\tseen\n-\tinvalid\n", 'brief');

like($t->post('/add?only=new', "http://a.com/\nhttp://c.com/\nx\n"
    . "http://c.com/2\n", @text)->{body},
    qr/^\d+\tnew\thttp:..c.com.\t1\n\d+\tnew\thttp:..c.com.2\t3\n$/,
    'only=new with the index');
like($t->post('/add?only=new&brief=1&sites=1', "http://a.com/\nhttp://d.com/",
    @text)->{body}, qr/^\d+\tnew\tsite-new\t1\n$/, 'columns keep their order');
is($t->post('/add?only=new', "http://a.com/\n", @text)->{body}, '',
    'nothing new');
is($t->post('/add?only=old', "http://a.com/\n", @text)->{status}, 400,
    'an unknown only');
is($t->post('/add?brief=0', "http://a.com/\n", @text)->{body},
    "0\tseen\thttp://a.com/\n", 'an option can be off');

# --- bases

is($t->post('/seen?base=http://a.com/x/y', "../b\n./z\n?q\n//b.com/\n"
    . "http://b.com", @text)->{body},
    "1\tseen\thttp://a.com/b\n-\tunseen\thttp://a.com/x/z\n"
    . "-\tunseen\thttp://a.com/x/y?q\n" . ident('http://b.com/') x 2,
    'a base in the query is for all');
is($t->post('/seen?base=foo', "http://a.com/\n", @text)->{body},
    "-\tinvalid\tbase\n", 'a base that is none');
is($t->post('/seen?base=http%3A%2F%2Fa.com%2Fx%3Fq%3D%2B%2526',
    "#f\n", @text)->{body}, "-\tunseen\thttp://a.com/x?q=+%26\n",
    'a query value is decoded once');

# --- JSON

$r = $t->post('/add', '["http://a.com/","x",7,null,{"url":"y"},'
    . '"http:\/\/e.com\/\u0041"]', @json);
is($r->{headers}{'content-type'}, 'application/json', 'JSON for JSON');
my $next = routed() ? $r->json->{next_ids}{0} : $r->json->{next_id};
is_deeply($r->json, { results => [
    { id => 0, status => 'seen', url => 'http://a.com/' },
    { id => undef, status => 'invalid', reason => 'no-base' },
    { id => undef, status => 'invalid', reason => 'json' },
    { id => undef, status => 'invalid', reason => 'json' },
    { id => undef, status => 'invalid', reason => 'json' },
    { id => $next, status => 'new', url => 'http://e.com/A' } ],
    new => 1, seen => 1, unseen => 0, errors => 4,
    member_ids($next, $epoch) }, 'a JSON array');

for my $body ('{"base":"http://a.com/x/","urls":["../b","/"]}',
    '{"urls":["../b","/"],"base":"http://a.com/x/"}')
{
    is_deeply([ map { $_->{id} } @{ $t->post('/seen', $body, @json)
        ->json->{results} } ], [ 1, 0 ], 'a base in the object');
}

is_deeply($t->post('/seen?base=http://b.com/', '{"base":"http://a.com/x/",'
    . '"urls":["../b"]}', @json)->json->{results}[0]{id}, 1,
    'and it goes before that of the query');
is_deeply($t->post('/add?only=new', '["http://a.com/","http://f.com/"]',
    @json)->json->{results}, [ { id => $next + 1, status => 'new',
    url => 'http://f.com/', index => 1 } ], 'only=new in JSON');
is_deeply([ map { $_->{new_site} } @{ $t->post('/add?sites=1',
    '["http://a.com/","http://g.com/","http://g.com/2"]', @json)
    ->json->{results} } ],
    [ JSON::PP::false, JSON::PP::true, JSON::PP::false ], 'new_site');
is_deeply($t->post('/seen', '[]', @json)->json->{results}, [], 'an empty one');

# --- NDJSON

$r = $t->post('/seen', qq({"url":"b","base":"http://a.com/","ref":[1,"x"]}\n)
    . qq({"url":"http://a.com/"}\n\nbroken\n{"base":"http://a.com/"}\n)
    . qq("http://a.com/"\n{"url":"c","base":"foo","ref":null}\n), @ndjson);
is($r->{headers}{'content-type'}, 'application/x-ndjson', 'NDJSON for NDJSON');
is_deeply([ lines($r) ], [
    { id => 1, status => 'seen', url => 'http://a.com/b', ref => [ 1, 'x' ] },
    { id => 0, status => 'seen', url => 'http://a.com/' },
    { id => undef, status => 'invalid', reason => 'json' },
    { id => undef, status => 'invalid', reason => 'json' },
    { id => undef, status => 'invalid', reason => 'json' },
    { id => undef, status => 'invalid', reason => 'base', ref => undef } ],
    'NDJSON');

for my $type ('application/jsonl', 'application/x-ndjson; charset=utf-8') {
    is((lines($t->post('/seen?summary=1', qq({"url":"http://a.com/"}\n),
        'Content-Type' => $type)))[1]{seen}, 1, "summary with $type");
}

# --- form

$r = $t->post('/add', 'url=http%3A%2F%2Fh.com%2Fa+b%3Fx%26y', @form);
is($r->{status}, 201, 'a form with one URL is single');
is($r->json->{url}, 'http://h.com/a%20b?x&y', 'and decoded once');
is($t->post('/seen', 'url=b&base=http://a.com/', @form)->json->{id}, 1,
    'a base');
is_deeply([ map { $_->{id} } @{ $t->post('/seen',
    'url=b&url=/&base=http://a.com/', @form)->json->{results} } ], [ 1, 0 ],
    'several are a batch');
is($t->post('/seen', "http://a.com/\nhttp://a.com/b\n", @form)->{body},
    "0\tseen\thttp://a.com/\n1\tseen\thttp://a.com/b\n",
    'what is no form is text: curl --data-binary');
is($t->post('/seen', 'url=b&base=http://a.com/&ref=r%22', @form)->json->{ref},
    'r"', 'a ref');

# --- single

$r = $t->post('/add?url=http://s.com/', '');
is($r->{status}, 201, 'a single one that is new is 201');
my $id = $r->json->{id};
is($r->{headers}{location}, "url/$id", 'with a relative Location');
is_deeply($r->json, { id => $id, status => 'new', url => 'http://s.com/',
    next_id => $id, epoch => $epoch }, 'one object');
$r = $t->post('/add', '{"url":"http://s.com/","ref":{"a":1.50}}', @json);
is($r->{status}, 200, 'and 200 if it was there');
like($r->{body}, qr/"ref":\{"a":1\.50\}/, 'ref is echoed as it was written');
$r = $t->post('/add', '{"url":"http://s.com/"} and more', @json);
is("$r->{status} " . $r->json->{processed}, '400 0', 'a fault after it');
$r = $t->post('/add', '{"url":"http://t.com/"} and more', @json);
is($r->{status}, 400, '  after a new one');
ok(!exists $r->{headers}{location}, '  which is no resource of an error');
is($t->get('/seen?url=http://www.s.com/')->json->{id}, $id,
    'the other spelling of the site is the same URL');
is_deeply($t->get('/seen?url=http://www.s.com/x')->json,
    { id => undef, status => 'unseen', url => 'http://s.com/x',
    next_id => $id + 1, epoch => $epoch }, 'unseen, in the spelling it has');
$r = $t->get('/seen?url=ftp://x/');
is($r->{status}, 422, 'a single one that is invalid is 422');
is($r->{headers}{'content-type'}, 'application/problem+json', 'a problem');
is($r->json->{reason}, 'scheme', 'with the reason');
is($t->post('/add', '{"url":"x"}', @json)->{status}, 422, 'in JSON as well');

for my $ref (q(7), q("x\ny"), q(null), q({"a":[1.50,true]}),
    '"' . 'z' x 4000 . '"')
{
    $r = $t->post('/seen', qq({"url":"x","ref":$ref}), @json);
    is_deeply($r->json, { type => 'about:blank', status => 422,
        title => 'Unprocessable Content',
        detail => 'the URL is relative, and there is no base',
        id => undef, reason => 'no-base', ref => json($ref) },
        'and its ref is echoed: ' . substr $ref, 0, 20);
}
is($t->post('/add', 'url=x', @form)->{status}, 422, 'and as a form');
is($t->get('/limits/seen?url=' . 'a' x 41)->json->{reason}, 'length',
    'a long one');
is($t->request('HEAD', '/seen?url=http://s.com/')->{status}, 200, 'HEAD');

# --- Accept

is($t->get('/seen?url=http://s.com/', Accept => 'text/plain')->{body},
    "$id\tseen\thttp://s.com/\n", 'text for a single one');
is($t->post('/seen', "http://a.com/\n", @text,
    Accept => 'application/json')->json->{results}[0]{id}, 0, 'JSON for text');
is((lines($t->post('/seen', "http://a.com/\n", @text,
    Accept => 'application/x-ndjson')))[0]{id}, 0, 'NDJSON for text');
is($t->post('/seen', '["http://a.com/"]', @json,
    Accept => 'text/html;q=0.9, text/plain;q=0.5, application/json;q=0.4')
    ->{body}, "0\tseen\thttp://a.com/\n", 'q counts');
like($t->post('/seen', '["http://a.com/"]', @json, Accept => '*/*')->{body},
    qr/^\{/, 'anything is what it would be');
like($t->post('/seen', '["http://a.com/"]', @json, Accept => 'image/png')
    ->{body}, qr/^\{/, 'and so is what there is not');

# --- faults

for ([ '["http://z1.com/","http://z2.com/"', @json ],
    [ '{"urls":["http://z1.com/","http://z2.com/"],"urls":[]}', @json ])
{
    my ($body, @type) = @$_;

    $r = $t->post('/add', $body, @type);
    is($r->{status}, 400, 'broken JSON is 400');
}

$r = $t->post('/add', '["http://z3.com/","http://z4.com/"!', @json);
is($r->json->{processed}, 0, 'nothing of it is applied');
is($r->json->{detail}, 'malformed body: a comma or the end was expected',
    '  it says what is wrong');
is($t->get('/seen?url=http://z3.com/')->json->{status}, 'unseen',
    '  and so it is');

# framing that breaks after items were applied

my @parts = ("POST /add HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\n"
    . "Transfer-Encoding: chunked\r\n\r\n", "1d\r\nhttp://v.com/1\n"
    . "http://v.com/2\r\n", "xyz\r\n");
$r = $t->http('', parts => \@parts, pause => 0.1);
like($r, qr/^HTTP.1.1 400 .*"processed":1,.*"url":"http:..v.com.1"}\]/s,
    'a malformed chunk is reported with what was applied');
unlike($r, qr/HTTP.*HTTP/s, '  once');
$r = $t->http(join('', @parts) . "GET /health HTTP/1.0\r\n\r\n");
like($r, qr/^HTTP.1.1 400 .*"processed":0}/s, 'also where all comes at once');
unlike($r, qr/HTTP.*HTTP/s, '  and what follows is no request');
$r = $t->post('/seen', "http://v.com/1\n!", @json)->json;
is($r->{processed} . (exists $r->{results} ? ' results' : ''), 0,
    'a look-up has nothing to report');
$r = $t->post('/limits/seen', "http://v.com/1\n" x 4, @text)->json;
is($r->{processed} . (exists $r->{results} ? ' results' : ''), 3,
    '  also of what it had looked up');

is($t->post('/add', '7', @json)->{status}, 400, 'neither array nor object');
is($t->post('/add', '', @json)->{status}, 400, 'no JSON at all');
is($t->post('/add', 'x', 'Content-Type' => 'image/png')->{status}, 415,
    'another content type');
$r = $t->post('/add', 'x', @text, 'Content-Encoding' => 'br');
is("$r->{status} $r->{headers}{'accept-encoding'}", '415 gzip',
    'another encoding, and what is taken');
is($t->post('/add?url=http://a.com/', 'x', @text)->{status}, 400,
    'a URL in the query and a body');
is($t->get('/seen')->{status}, 400, 'no URL');
$r = $t->get('/add?url=http://a.com/');
is($r->{status}, 405, '/add refuses GET');
is($r->{headers}{allow}, 'POST', 'and names what it takes');
is($t->forget('/seen')->{headers}{allow}, 'GET, HEAD, POST', 'Allow');
like($t->http("POST /add HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
    qr/^HTTP.1.1 411 /, 'no length');
like($t->http("POST /add?url=http://a.com/ HTTP/1.1\r\nHost: a\r\n"
    . "Connection: close\r\n\r\n"), qr/^HTTP.1.1 200 /,
    'which a URL in the query does not need');
is($t->get('/nothing')->{status}, 404, 'no such endpoint');
is($t->get('/seen/x?url=http://a.com/')->{status}, 404, 'nothing below /seen');

# --- limits

is($t->post('/limits/add', "http://l.com/" . 'x' x 27 . "\nhttp://l.com/"
    . 'x' x 28 . "\n", @text)->{body} =~ s/\thttp.*//r, "0\tnew\n"
    . "-\tinvalid\tlength\n", 'urlstore_max_url');
$r = $t->post('/limits/add', join("\n", map { "http://m.com/$_" } 1 .. 4),
    @text);
is($r->{status}, 413, 'urlstore_max_batch');
is($r->json->{processed}, 3, 'the first are applied');
is_deeply([ map { $_->{status} . $_->{url} } @{ $r->json->{results} } ],
    [ map { "newhttp://m.com/$_" } 1 .. 3 ], 'and answered, with their ids');
is($r->json->{results}[2]{id}, 3, '  which are those of the store');
like($r->json->{detail}, qr/\b3\b.*urlstore_max_batch/, '  the limit is named');
is($t->get("/limits/url/$_->[0]")->{status}, $_->[1], "ids in a path: $_->[0]")
    for [ '1,2,3,x', 413 ], [ '1,2,x', 400 ], [ '1,2,3', 200 ];
like($t->get('/limits/metrics')->{body}, routed()
    ? qr/^urlstore_router_urls_total\{cluster="small",status="new"\} 4$/m
    : qr/^urlstore_answers_total\{zone="small",status="new"\} 4$/m,
    'and counted');

# what has its length at its front is refused before anything is added

for ([ join('&', map { "url=http://f.com/$_" } 1 .. 4), @form ],
    [ '{"urls":["/1","/2","/3","/4"],"base":"http://f.com/"}', @json ],
    [ '["http://f.com/1","http://f.com/2","http://f.com/3",7]', @json ])
{
    my ($body, @type) = @$_;

    $r = $t->post('/limits/add', $body, @type);
    is("$r->{status} " . $r->json->{processed}, '413 0', "@type: all or none");
    is($t->stats('/limits')->{urls}, 4, '  nothing was added');
}

$r = $t->post('/limits/add', 'x' x 201, @text);
is($r->{status}, 413, 'urlstore_max_body');
is($r->{headers}{'content-type'}, 'application/problem+json', 'a problem');
my @chunks = ("http://n.com/1\n", "\n" x 100, "\n" x 100, 'x');
$r = $t->post('/limits/add', sub { shift @chunks }, @text);
is($r->{status}, 413, 'also where it is chunked');
is($r->{headers}{'content-type'}, 'application/problem+json', 'a problem');
is($t->post('/limits/seen', "http://n.com/1\n" . "\n" x 185, @text)->{status},
    200, 'a body of just this size');


sub ident
{
    my ($url) = @_;

    my $s = $t->get('/seen?url=' . uri_escape($url))->json;

    return "$s->{id}\t$s->{status}\t$s->{url}\n";
}


sub lines
{
    return map { json($_) } split /\n/, $_[0]{body};
}
