#!/usr/bin/perl

# Every input format, by every output format, of /add, /seen and /mark, with
# the same 1,000 real URLs, gives the same ids.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 32m marks=visited;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

# JSON cannot carry what is not UTF-8

my @urls = grep { utf8::decode(my $s = $_) }
    @{ corpus('html_news_blogs_pages', 1010) };
$#urls = 999;

my $first = $t->post('/add', join('', map { "$_\n" } @urls),
    'Content-Type' => 'text/plain');
my @want = map { /^(\d+|-)\t/ ? $1 : '?' } split /\n/, $first->{body};

is(scalar @want, 1000, 'an answer for each');
cmp_ok(scalar(grep { $_ ne '-' } @want), '>', 800, 'most are URLs');

my $json = JSON::PP->new->allow_nonref->ascii;

my %input = (
    'text' => [ 'text/plain', join '', map { "$_\n" } @urls ],
    'text, CRLF' => [ 'text/plain', join "\r\n", @urls ],
    'no type' => [ undef, join "\n", @urls ],
    'form as text' => [ 'application/x-www-form-urlencoded',
        join "\n", @urls ],
    'form' => [ 'application/x-www-form-urlencoded',
        join '&', map { 'url=' . uri_escape($_) } @urls ],
    'JSON array' => [ 'application/json',
        '[' . join(',', map { encode($_) } @urls) . ']' ],
    'JSON object' => [ 'application/json', '{"urls": ['
        . join(', ', map { encode($_) } @urls) . ']}' ],
    'JSON object with base' => [ 'application/json; charset=utf-8',
        '{"base": null, "urls":['
        . join(',', map { encode($_) } @urls) . ']}' ],
    'NDJSON' => [ 'application/x-ndjson', join '',
        map { '{"url":' . encode($_) . "}\n" } @urls ],
    'JSON lines' => [ 'application/jsonl', join "\n",
        map { '{"ref":1,"url":' . encode($_) . '}' } @urls ],
);

my %output = (
    'text' => [ 'text/plain', sub {
        map { /^(\d+|-)\t/ ? $1 : '?' } split /\n/, $_[0] } ],
    'JSON' => [ 'application/json', sub {
        map { $_->{id} // '-' } @{ json($_[0])->{results} } } ],
    'NDJSON' => [ 'application/x-ndjson', sub {
        map { json($_)->{id} // '-' } split /\n/, $_[0] } ],
);

for my $path ('/add', '/seen', '/mark/visited') {
    for my $in (sort keys %input) {
        for my $out (sort keys %output) {
            my ($type, $body) = @{ $input{$in} };

            my $r = $t->post($path, $body, $type ? ('Content-Type' => $type)
                : (), 'Accept' => $output{$out}[0]);

            is($r->{status}, 200, "$path $in -> $out") or diag($r->{body});
            is_deeply([ $output{$out}[1]->($r->{body}) ], \@want,
                "$path $in -> $out: the same ids");
        }
    }
}


sub encode
{
    my ($url) = @_;

    utf8::decode($url);

    return $json->encode($url);
}
