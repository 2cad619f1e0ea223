#!/usr/bin/perl

# Prometheus understands /metrics.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 64m;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

my $lines = join '', map { "$_\n" } @{ corpus('html_news_blogs_pages', 3000) };

for (1 .. 3) {
    is($t->post('/add', $lines, 'Content-Type' => 'text/plain')->{status},
        200, 'load');
}

my $r = $t->get('/metrics');

is($r->{status}, 200, 'metrics');
like($r->{headers}{'content-type'}, qr|^text/plain; version=0\.0\.4|,
    'type of the text format');

spew($t->dir . '/metrics', $r->{body});

my $out = `promtool check metrics < @{[$t->dir]}/metrics 2>&1`;

is($?, 0, 'promtool accepts them') or diag($out);
is($out, '', 'without a complaint');

# it would complain

spew($t->dir . '/wrong', "urlstore_x 1\nurlstore_x 2\n");
isnt(system("promtool check metrics < @{[$t->dir]}/wrong >/dev/null 2>&1"), 0,
    'promtool refuses a wrong file');

like($r->{body}, qr/^urlstore_urls(?:\{[^}]*\})? \d+$/m, 'number of URLs');
