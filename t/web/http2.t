#!/usr/bin/perl

# Batches over HTTP/2 (curl speaks it without TLS): bodies have no
# Content-Length there and arrive in frames.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 64m;
client_max_body_size 8m;
server {
    listen 127.0.0.1:%%PORT%% http2;
    listen 127.0.0.1:%%PORT1%%;
    location / { urlstore_api u; }
}
CONF

my $lines = corpus('html_news_blogs_pages', 9000);
my $body = join '', map { "$_\n" } @$lines;

spew($t->dir . '/body', $body);

my $h2 = curl('/add', '--data-binary', '@' . $t->dir . '/body');
my $h1 = $t->client(1)->request('POST', '/seen', $body,
    'Content-Type' => 'text/plain');

is(scalar(() = $h2 =~ /\n/g), scalar @$lines, 'an answer for each line');
is($h2 =~ s/\tnew\t/\tseen\t/gr =~ s/^(-\t\w+)\t.*/$1/mgr,
    $h1->{body} =~ s/^(-\t\w+)\t.*/$1/mgr, 'the same as over HTTP/1.1');

is(curl('/add', '--data-binary', '@' . $t->dir . '/body', '-H',
    'Transfer-Encoding: chunked'), $h2 =~ s/\tnew\t/\tseen\t/gr,
    'without a length');

like(curl('/url/0'), qr|^https?://|, 'GET');
like(curl('/add', '--data-urlencode', 'url=http://h2.example/'),
    qr/"status": ?"new"/, 'a single one');
like(curl('/add', '--data-binary', '["http://h2.example/', '-H',
    'Content-Type: application/json'), qr/"status": ?400/, 'a fault');


sub curl
{
    my ($path, @args) = @_;

    # curl calls a body a form unless -H says otherwise

    my @type = grep({ /^Content-Type|urlencode/ } @args) ? ()
        : ('-H', 'Content-Type: text/plain');

    open my $fh, '-|', 'curl', '-sS', '--http2-prior-knowledge', @type, @args,
        'http://127.0.0.1:' . $t->port . $path or die "curl: $!";

    local $/;
    return scalar(<$fh>) // '';
}
