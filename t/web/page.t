#!/usr/bin/perl

# The status page in headless Chromium, below two different locations.  The
# screenshot is build/status.png.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone pages 64m;
urlstore_zone other 64m;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api pages; }
    location /crawl/one/ { urlstore_api other; }
}
CONF

my ($chromium) = grep { -x } qw(/usr/bin/chromium /usr/bin/chromium-browser);

for my $path ('/', '/crawl/one/') {
    my $r = $t->post("${path}add",
        join('', map { "$_\n" } @{ corpus('html_news_blogs_pages', 5000) }),
        'Content-Type' => 'text/plain');

    is($r->{status}, 200, "filled $path");

    my $url = 'http://127.0.0.1:' . $t->port . $path;
    my $out = `node --test-reporter=tap $top/t/web/page.mjs $url $chromium \\
        $top/build/status.png 2>&1`;

    is($?, 0, "page at $path") or diag($out);
}

my $r = $t->get('/crawl/one');
is($r->{status}, 301, 'a location without its slash is led to it');
like($r->{headers}{location}, qr|/one/$|, 'by a redirect');

$r = $t->get('/');
is($r->{headers}{'content-type'}, 'text/html; charset=utf-8', 'HTML');
like($r->{headers}{'content-security-policy'}, qr/default-src 'none'/,
    'nothing from elsewhere');
is($t->request('HEAD', '/')->{status}, 200, 'HEAD');
is($t->post('/', '')->{status}, 405, 'POST');
