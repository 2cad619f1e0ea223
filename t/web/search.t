#!/usr/bin/perl

# examples/search.html in headless Chromium, from a server of its own, over
# conf/balancer.conf as it stands; another origin is refused.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Conf;
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;
my $store = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 16m;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF
my $balancer = UrlStore::Conf::run('balancer', ports => {
    map { $_ => $store->port } 8081 .. 8083 });
my $pages = UrlStore::Test->new->run(<<'CONF');
server {
    listen 127.0.0.1:%%PORT%%;
    listen 127.0.0.2:%%PORT%%;
    location / { root %%TOP%%/examples; types { text/html html; } }
}
CONF

$store->post('/add', "http://a.test/\nhttps://www.b.test/x?y=1&z=%22\n");
$store->post('/add', "http://c.test/\n");
is($store->forget('/url/2')->{status}, 204, 'one is deleted');

my $page = 'http://127.0.0.1:' . $pages->port . '/search.html?store=http://'
    . '127.0.0.1:' . $balancer->port . '/&ids=1,0,2,99';
my $out = `node --test-reporter=tap $top/t/web/search.mjs '$page' \\
    /usr/bin/chromium-headless-shell 2>&1`;

is($?, 0, 'in Chromium') or diag($out);
like($out, qr/^# pass 2/m, 'all of it');
