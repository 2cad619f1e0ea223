#!/usr/bin/perl

# The status page in headless Chromium, below several locations.  Screenshots
# are build/status*.png.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;

my $t = UrlStore::Test->new->allow(qr/map.json/)->run(<<'CONF');
urlstore_zone pages 16m marks=visited;
urlstore_zone other 64m path=%%DIR%%/other;
urlstore_zone few 16m;
urlstore_filter filter 1m capacity=100000 error=0.01;
urlstore_cluster crawl %%DIR%%/map.json;
urlstore_zone s0 16m path=%%DIR%%/s0 cluster=crawl shard=0 node=n0;
urlstore_zone s1 16m path=%%DIR%%/s1 cluster=crawl shard=1 node=n1;
upstream n0 { server 127.0.0.1:%%PORT1%%; }
upstream n1 { server 127.0.0.1:%%PORT2%%; }
server { listen 127.0.0.1:%%PORT1%%; location / { urlstore_api s0; } }
server { listen 127.0.0.1:%%PORT2%%; location / { urlstore_api s1; } }
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api pages; }
    location /crawl/one/ { urlstore_api other; }
    location /few/ { urlstore_api few; }
    location /filter/ { urlstore_api filter; }
    location /router/ { urlstore_route crawl; }
    location = /admin { urlstore_cluster_admin crawl; }

    location /closed/ { urlstore_api pages; }
    location = /closed/seen { deny all; urlstore_seen pages; }
    location = /closed/stats { deny all; urlstore_stats pages; }
}
CONF

my $chromium = '/usr/bin/chromium-headless-shell';

ok($t->ready(below => '/crawl/one', write => 1), 'ready');

# the map of the router's shards

my @stats = map {
    my $shard = $t->client($_);

    ok(wait_until(20, sub { $shard->request('GET', '/health')->{status} == 200
        }), "shard $_");
    $shard->request('GET', '/stats')->json;
} 1, 2;

is($t->post('/admin', JSON::PP->new->encode({ cluster => 'c' x 32,
    version => 1, norm => $stats[0]{normalization}, key => 'url',
    shards => { map { $_ => { uuid => $stats[$_]{uuid}, nodes => ["n$_"] } }
        0, 1 }, slots => [['0-2047', 0], ['2048-4095', 1]] }),
    'Content-Type' => 'application/json')->{status}, 204, 'a map');

for my $path ('/', '/crawl/one/', '/filter/', '/router/') {
    my $r = $t->post("${path}add",
        join('', map { "http://www.filled.example/$_/page-$_.html\n" }
            1 .. 10000), 'Content-Type' => 'text/plain');

    is($r->{status}, 200, "filled $path") for 1 .. 6;

    for my $n (1 .. ($path =~ /filter|router/ ? 0 : 5)) {
        $t->post("${path}add",
            join('', map { "http://s$n.example/$_/page-$_.html\n" }
                1 .. 10000), 'Content-Type' => 'text/plain');
    }
}

for my $path ('/', '/crawl/one/') {
    run('page.mjs', $path);
}

run('page_kinds.mjs', '/');

my $r = $t->get('/crawl/one');
is($r->{status}, 301, 'a location without its slash is led to it');
like($r->{headers}{location}, qr|/one/$|, 'by a redirect');

$r = $t->get('/');
is($r->{headers}{'content-type'}, 'text/html; charset=utf-8', 'HTML');
is($r->{body}, slurp("$top/front/status.html"), 'the file, as it is');
is($r->{headers}{'content-security-policy'}, "default-src 'none'; "
    . "style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    . "img-src data:; connect-src 'self'; form-action 'self'; "
    . "base-uri 'none'; frame-ancestors 'none'", 'nothing from elsewhere');
is($t->get('/?q=<script>')->{body}, $r->{body}, 'whatever the query');
cmp_ok(length $r->{body}, '<', 32768, 'and small');
is($t->request('HEAD', '/')->{status}, 200, 'HEAD');
is($t->post('/', '')->{status}, 405, 'POST');


sub run
{
    my ($script, $path) = @_;

    my $url = 'http://127.0.0.1:' . $t->port . $path;
    my $out = `node --test-reporter=tap $top/t/web/$script $url $chromium \\
        $top/build/status 2>&1`;

    is($?, 0, "$script at $path") or diag($out);
    like($out, qr/^# pass [5-9]/m, 'all of it');
}
