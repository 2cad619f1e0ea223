#!/usr/bin/perl

# Prometheus understands /metrics.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 64m;
urlstore_zone kept 64m path=%%DIR%%/kept;
urlstore_filter f 1m capacity=10000 error=0.01;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /kept/ { urlstore_api kept; }
    location /f/ { urlstore_api f; }
}
CONF

my @text = ('Content-Type' => 'text/plain');
my $lines = join '', map { "$_\n" } @{ corpus('html_news_blogs_pages', 3000) };

ok($t->ready(below => '/kept', write => 1), 'ready');

for my $at ('', '/kept', '/f') {
    for (1 .. 3) {
        is($t->post("$at/add", $lines, @text)->{status}, 200, 'load');
    }

    my $r = $t->get("$at/metrics");

    is($r->{status}, 200, "$at/metrics");
    like($r->{headers}{'content-type'}, qr|^text/plain; version=0\.0\.4|,
        'type of the text format');

    spew($t->dir . '/metrics', $r->{body});

    my $out = `promtool check metrics < @{[$t->dir]}/metrics 2>&1`;

    is($?, 0, 'promtool accepts them') or diag($out);
    is($out, '', 'without a complaint');
}


# it would complain

spew($t->dir . '/wrong', "urlstore_x 1\nurlstore_x 2\n");
isnt(system("promtool check metrics < @{[$t->dir]}/wrong >/dev/null 2>&1"), 0,
    'promtool refuses a wrong file');
