#!/usr/bin/perl

# What a cache in front may keep: the URL of an id, once no failure can take it
# back, for as long as the operator says.  And what a server answers that
# shares the directory with the one that owns it.

use strict;
use warnings;

use lib 't/lib';

use File::Path qw(remove_tree);

use UrlStore::Test;

my $conf = <<'CONF';
urlstore_zone always 16m path=%%DIR%%/always sync=always marks=m;
urlstore_zone later 16m path=%%DIR%%/later sync=400ms;
urlstore_zone off 16m path=%%DIR%%/off sync=off;
urlstore_zone memory 16m;
server {
    listen 127.0.0.1:%%PORT%%;
    urlstore_max_age 5m;
    location /always/ { urlstore_api always; urlstore_max_age 1h; }
    location /later/ { urlstore_api later; }
    location /off/ { urlstore_api off; }
    location /memory/ { urlstore_api memory; }
    location = /never { urlstore_url always; urlstore_max_age 0; }
    location ~ ^/never/\d+$ { urlstore_url always; urlstore_max_age 0; }
    location = /known {
        return 200 "$urlstore_status|$urlstore_id|$urlstore_url";
        urlstore_seen always;
    }
}
CONF

my $t = UrlStore::Test->new->run($conf);
my @zones = qw(always later off memory);
my $lines = corpus('html_news_blogs_pages', 100);
my ($r, %etag);

ok($t->ready(below => "/$_", write => 1), "$_ is ready") for @zones;

# --- how long

for my $zone (@zones) {
    my $body = $t->post("/$zone/add", join("\n", @$lines, 'http://x.test/'))
        ->{body};
    my ($id) = $body =~ /^(\d+)\tnew\thttp:..x.test/m;

    $r = $t->get("/$zone/url/$id");
    $etag{$zone} = [ $id, $r->{headers}{etag} ];
    is($r->{headers}{'cache-control'}, $zone eq 'always'
        ? 'public, max-age=3600' : 'no-cache', "$zone: at once");
}

ok(wait_until(5, sub {
    $t->get('/later/url/0')->{headers}{'cache-control'} ne 'no-cache' }),
    'a sync makes it durable');
is($t->get('/later/url/0')->{headers}{'cache-control'}, 'public, max-age=300',
    'max-age of the server');
is($t->get("/$_/url/0")->{headers}{'cache-control'}, 'no-cache',
    "$_: it never is") for 'off', 'memory';
is($t->get('/never/0')->{headers}{'cache-control'}, 'public, max-age=0',
    'urlstore_max_age 0');

is($t->get('/always/url/0', @$_)->{headers}{'cache-control'},
    'private, max-age=3600', "private: $_->[0]")
    for [ Authorization => 'Basic YTpi' ], [ Cookie => 'session=1' ];

$r = $t->get('/always/url/0?redirect=1');
is("$r->{status} $r->{headers}{'cache-control'}", '302 public, max-age=3600',
    'a redirect');
is($t->get('/always/url/0,1')->{headers}{'cache-control'}, 'no-store',
    'not a list');

my ($id, $etag) = @{ $etag{always} };

for ($etag, qq("other", $etag), "W/$etag", '*') {
    $r = $t->get("/always/url/$id", 'If-None-Match' => $_);
    is("$r->{status} $r->{headers}{'cache-control'} $r->{headers}{etag}",
        "304 public, max-age=3600 $etag", "If-None-Match: $_");
}

is($t->get("/always/url/$id", 'If-None-Match' => '"other"')->{status}, 200,
    'If-None-Match of another');
is($t->get("/always/url/$id", 'If-None-Match' => $etag,
    Accept => 'application/json')->{status}, 200, 'of the text, for JSON');
is($t->get("/always/url/$id")->{headers}{vary}, 'Accept', 'Vary');
$r = $t->get("/always/url/$id", 'If-Match' => '"other"');
is("$r->{status} $r->{headers}{'cache-control'} " . $r->json->{title},
    '412 no-store Precondition Failed', 'If-Match of another');
is(keys %{{ map { $t->get("/$_/url/0")->{headers}{etag} => 1 } @zones }}, 4,
    'each store has its own');

# --- after a delete, and after a restart

is($t->forget("/always/url/$id")->{status}, 204, 'deleted');
$r = $t->get("/always/url/$id", 'If-None-Match' => $etag);
is("$r->{status} $r->{headers}{'cache-control'}", '410 no-store',
    'it is gone for those who had it, too');

my %before = map { $_ => $t->get("/$_/url/0")->{headers}{etag} } @zones;

ok($t->stop, 'stopped');
$t->start;
ok($t->ready(below => "/$_", write => 1), "$_ is ready again") for @zones;

is($t->get("/$_/url/0")->{headers}{etag}, $before{$_},
    "$_: the same store, the same ETag") for 'always', 'later', 'off';
is($t->get("/$_/url/0")->{headers}{'cache-control'} =~ s/ .*//r, 'public,',
    "$_: durable by now") for 'always', 'later', 'off';

$t->post('/memory/add', join("\n", @$lines));
isnt($t->get('/memory/url/0')->{headers}{etag}, $before{memory},
    'memory only: another epoch');

ok($t->stop, 'stopped');
remove_tree("$t->{dir}/always");
$t->start;
ok($t->ready(below => '/always', write => 1), 'with a new directory');
$t->post('/always/add', join("\n", @$lines));
isnt($t->get('/always/url/0')->{headers}{etag}, $before{always},
    'another store');

# --- a second server on the same directory

# A router has no directory, and so no owner: all of it is asserted above.

exit if routed();

my $second = UrlStore::Test->new;

$second->conf($conf =~ s/%%DIR%%/$t->{dir}/gr)->run;
ok(wait_until(20, sub { $second->get('/always/health')->json->{status}
    eq 'not-owner' }), 'not-owner');

$r = $second->get('/always/health');
is($r->{status}, 503, 'health');
is($r->json->{writable}, JSON::PP::false, 'not writable');

my ($known) = $t->get('/always/url/0')->{body} =~ /(.*)/;

is($second->get('/always/url/0')->{body}, "$known\n", 'an id');
is($second->get('/always/seen?url=' . uri_escape($known))->json->{id}, 0,
    'a hit');
is($second->get('/known?url=' . uri_escape($known))->{body},
    "seen|0|$known", 'by a variable');
is($second->get('/known?url=http://no.test/')->{body}, '||',
    'a variable does not deny');

for ([ GET => '/always/seen?url=http://no.test/' ],
    [ GET => '/always/url/999999' ], [ GET => '/always/url/0,999999' ],
    [ GET => '/always/site/no.test' ], [ POST => '/always/seen', "$known\nx:\n"
    . "http://no.test/\n" ], [ GET => '/always/prefix?url=http://no.test/' ],
    [ POST => '/always/add', "$known\n" ], [ POST => '/always/mark/m', "0\n" ],
    [ DELETE => '/always/mark/m', "0\n" ], [ DELETE => '/always/url/0' ])
{
    my ($method, $path, $body) = @$_;

    $r = $second->request($method, $path, $body);
    is("$r->{status} " . ($r->{headers}{'retry-after'} // '-'), '503 1',
        "$method $path is for the owner");
    is($r->json->{detail}, 'another server owns the directory',
        '  and it says so');
    is($r->{headers}{etag} // $r->{headers}{location}, undef,
        '  with nothing of the answer') if $method eq 'GET';
}

is($second->get('/always/stats')->{status}, 200, '/stats');
is($second->get('/always/metrics')->{status}, 200, '/metrics');
is($second->get('/always/')->{status}, 200, 'the page');
is($second->get('/always/normalize?url=http://a/')->{status}, 200,
    '/normalize');

ok($t->stop, 'the owner leaves');
ok($second->ready(below => '/always', write => 1),
    'and the other one takes over');
is($second->get('/known?url=http://no.test/')->{body},
    'unseen||http://no.test/', 'now it denies');
