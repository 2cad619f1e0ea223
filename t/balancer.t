#!/usr/bin/perl

# conf/balancer.conf: a balancer, a writer, two readers that follow it.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;

my $node = <<'CONF';
urlstore_zone u 64m;
client_max_body_size 8m;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

my ($writer, @readers) = map { UrlStore::Test->new(workers => 1)->run($node) }
    1 .. 3;

my ($http) = slurp("$top/conf/balancer.conf") =~ /^(http \{.*)/ms;

$http =~ s/^.*_temp_path.*\n//mg;
$http =~ s/127\.0\.0\.1:8081/'127.0.0.1:' . $writer->port/eg;
$http =~ s/127\.0\.0\.1:8082/'127.0.0.1:' . $readers[0]->port/eg;
$http =~ s/127\.0\.0\.1:8083/'127.0.0.1:' . $readers[1]->port/eg;
$http =~ s/127\.0\.0\.1:8080/127.0.0.1:%%PORT%%/g;
$http =~ s/access_log off;//;
unlike($http, qr/127\.0\.0\.1:8/, 'all ports are filled in');

my $t = UrlStore::Test->new(workers => 1)->run($http);

my @urls = @{ corpus('html_news_blogs_pages', 3000) };
my $added = post($t, '/add', @urls);

is(scalar(() = $added =~ /\n/g), 3000, 'added through the balancer');
is($writer->get('/stats')->json->{urls} > 1000, 1, 'to the writer');
is($readers[0]->get('/stats')->json->{urls}, 0, 'not to a reader');

like($t->get('/url/7')->{body}, qr|^https?://|,
    'an id that no reader has yet comes from the writer');


my $n = $writer->get('/stats')->json->{urls};

for my $reader (@readers) {
    my $out = `$top/tools/follow.sh --once http://127.0.0.1:@{[
        $writer->port]} http://127.0.0.1:@{[$reader->port]} 2>&1`;

    is("$?$out", '0', 'follows');
    is($reader->get('/stats')->json->{urls}, $n, 'and has them all');

    my $ids = join ',', 0 .. 99;

    is($reader->get("/url/$ids")->{body}, $writer->get("/url/$ids")->{body},
        'under the same ids');
}

is(post($t, '/seen', @urls), $added =~ s/\tnew\t/\tseen\t/gr,
    'readers know what the writer knows');


# CORS

my $r = $t->request('OPTIONS', '/seen', undef,
    Origin => 'https://search.example.com',
    'Access-Control-Request-Method' => 'GET');
is($r->{status}, 204, 'preflight');

$r = $t->get('/url/7', Origin => 'https://search.example.com');
is($r->{headers}{'access-control-allow-origin'},
    'https://search.example.com', 'an allowed origin');
$r = $t->get('/url/7', Origin => 'https://elsewhere.example');
ok(!$r->{headers}{'access-control-allow-origin'}, 'another origin');


# one reader dies, then both

$readers[0]->stop;

is(scalar(grep { $t->get("/url/$_")->{status} != 200 } 0 .. 49), 0,
    'one reader is enough');
is(post($t, '/seen', @urls[0 .. 9]),
    join('', ($added =~ s/\tnew\t/\tseen\t/gr =~ /(.*\n)/g)[0 .. 9]),
    'also for batches');

$readers[1]->stop;

is($t->get('/seen?url=http://example.com/')->{status}, 502,
    'without readers there is no answer');
like(post($t, '/add', 'http://still.example/'), qr/\tnew\t/,
    'the writer goes on');


# deleting goes to the writer

is($t->forget('/url/3')->{status}, 204, 'DELETE');
is($writer->get('/url/3')->{status}, 410, 'at the writer');

$t->allow(qr/connect\(\) failed/, qr/no live upstreams/);


sub post
{
    my ($t, $path, @urls) = @_;

    return $t->post($path, join('', map { "$_\n" } @urls),
        'Content-Type' => 'text/plain')->{body};
}
