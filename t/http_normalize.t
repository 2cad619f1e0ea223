#!/usr/bin/perl

# GET /normalize: what /add would store, and with explain=1 why.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $t = UrlStore::Test->new(workers => 1)->run(<<'CONF');
urlstore_zone u 16m;
urlstore_rewrite u ^(https?)://m\.(\w+"?)\. $1://$2.;
urlstore_reject u "/private/";
urlstore_max_depth u 5;
urlstore_zone s 16m schemes=first;
urlstore_zone k 16m www=keep;
urlstore_zone kept 16m path=%%DIR%%/kept sync=always;
urlstore_filter f 1m capacity=1000 error=0.01;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /s/ { urlstore_api s; }
    location /k/ { urlstore_api k; }
    location /kept/ { urlstore_api kept; }
    location /f/ { urlstore_api f; }
}
CONF

ok($t->ready(below => '/kept', write => 1), 'ready');

# --- the spelling of a site is that of its first URL

for my $at ('', '/kept') {
    is(add($at, 'http://www.a.example/1', 'http://b.example:81/'), 2,
        "two sites at $at");

    my $r = why($at, 'HTTP://A.example/x/y.html?q=1#f');

    is($r->{url}, 'http://www.a.example/x/y.html?q=1', 'what would be stored');
    is($r->{host}, 'www.a.example', 'its host');
    is($r->{path}, '/x/y.html', 'its path');
    is($r->{file}, 'y.html', 'its file');
    is($r->{query}, 'q=1', 'its query');
    is_deeply($r->{steps}[-1], { step => 'spell as first seen',
        before => 'http://a.example/x/y.html?q=1', after => $r->{url},
        first => 0 }, 'the last step says why: id 0 is spelled so');
    is(seen($at, 'http://a.example/x/y.html?q=1'), $r->{url},
        'as /seen says');

    $r = why($at, 'http://www.b.example:81/?');
    is($r->{url}, 'http://b.example:81/', 'without www');
    is($r->{host}, 'b.example', 'its host');
    is($r->{port}, 81, 'its port');
    is($r->{steps}[-1]{first}, 1, 'for id 1 is spelled so');

    $r = why($at, 'http://www.a.example/1');
    is_deeply($r->{steps}, [], 'nothing to change, no steps');
    is($t->get("$at/normalize?url=http://a.example/1", Accept => 'text/plain')
        ->{body}, "http://www.a.example/1\n", 'as text');
}

$t->forget('/url/0');
is(why('', 'http://a.example/')->{url}, 'http://www.a.example/',
    'also if that one was deleted');
is(why('', 'http://new.example/')->{url}, 'http://new.example/',
    'a new site is spelled as it comes');
is(why('', 'http://a.example/', '&profile=whatwg')->{url},
    'http://a.example/', 'another profile knows nothing of the store');

add('/s', 'https://www.a.example/1');
my $r = why('/s', 'http://a.example/1');
is($r->{url}, 'https://www.a.example/1', 'schemes=first');
is("$r->{scheme} $r->{host} $r->{path}", 'https www.a.example /1', 'parts');
is($r->{steps}[-1]{first}, 0, 'the step');
is(why('/s', 'http://a.example/2')->{url}, seen('/s',
    'http://a.example/2'), 'of a new URL');

add('/k', 'http://www.a.example/1');
is(why('/k', 'http://a.example/1')->{url}, 'http://a.example/1',
    'www=keep');
is(why('/f', 'http://a.example/1')->{url}, 'http://a.example/1',
    'a filter');


# --- a URL that is refused: how far it came

for ([ 'http://a.example/x/../private/1', 'rule:', 'parse' ],
    [ 'HTTP://a.example/1/2/3/4/5/6/7', 'depth', 'parse' ])
{
    my ($url, $reason, $step) = @$_;

    $r = $t->get('/normalize?explain=1&url=' . uri_escape($url));
    is($r->{status}, 422, "refused: $url");
    like($r->json->{reason}, qr/^\Q$reason\E/, '  reason');
    is($r->json->{steps}[0]{step}, $step, '  after a step');
    is($r->json->{steps}[0]{before}, $url, '  from the URL');
}

$r = $t->get('/normalize?explain=1&url=ftp://a/')->json;
is_deeply($r->{steps}, [], 'none if it cannot be parsed');
is($r->{reason}, 'scheme', 'the reason says why');
ok(!exists $t->get('/normalize?url=ftp://a/')->json->{steps},
    'none unless asked for');


# --- names and texts of any kind are JSON

$r = why('', 'http://m.news.example/');
is($r->{url}, 'http://news.example/', 'rewritten');
like($r->{steps}[-1]{step}, qr/^rewrite /, 'the step of a rule');

$r = why('', "http://a.example/\xff\x00\"\\\t" . ('%ff' x 800));
like($r->{url}, qr|^http://www\.a\.example/|, 'octets of any kind');
$r = $t->get('/normalize?explain=1&url=' . uri_escape("http://\xff\x01/"));
is($r->json->{status}, 422, 'in a host');


sub add
{
    my ($at, @urls) = @_;

    return scalar(() = $t->post("$at/add", join('', map { "$_\n" } @urls),
        'Content-Type' => 'text/plain')->{body} =~ /\tnew\t/g);
}


sub seen
{
    my ($at, $url) = @_;

    return $t->get("$at/seen?url=" . uri_escape($url))->json->{url};
}


sub why
{
    my ($at, $url, $more) = @_;

    my $r = $t->get("$at/normalize?explain=1&url=" . uri_escape($url)
        . ($more // ''));

    return $r->json // do {
        fail("$at $url: $r->{status} $r->{body}");
        { steps => [ {} ] };
    };
}
