#!/usr/bin/perl

# conf/urlstore.conf as it stands, and with its examples: rules, and access
# that only the crawlers' network has to what changes the store, however a
# path is spelled.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;
use UrlStore::Conf;

my @text = ('Content-Type' => 'text/plain');
my @crawler = (@text, 'X-Client' => '10.1.2.3');
my @other = (@text, 'X-Client' => '192.0.2.1');

my $t = UrlStore::Conf::run('urlstore');

ok($t->ready(write => 1), 'as it stands');
is($t->post('/add', "http://a.example/calendar/2026/?utm_x=1\n", @other)
    ->{body}, "0\tnew\thttp://a.example/calendar/2026/?utm_x=1\n", 'adds');
is($t->request('HEAD', '/log')->{status}, 404, 'the log is for nobody');

# names: of the server, and of others that lead to its address

for ([ 'localhost', 200 ], [ '127.0.0.1', 200 ], [ '[::1]', 200 ],
    [ 'evil.example', 421 ], [ '127.0.0.1.evil.example', 421 ], [ '', 421 ])
{
    my ($name, $want) = @$_;
    my $host = $name eq '' ? '' : "$name:" . $t->port;

    is(status('GET', '/seen?url=http://a.example/', $host), $want,
        "Host \"$host\" reads: $want");
    is(status('POST', '/add?url=http://a.example/calendar/2026/', $host),
        $want == 200 ? 201 : 421, '  and adds') if $name ne '127.0.0.1'
            && $name ne '[::1]';
}

$t->stop;


# --- the examples

$t = UrlStore::Conf::run('urlstore', examples => 1);
ok($t->ready(write => 1), 'with its examples');

my $answer = $t->post('/add', join('', map { "$_\n" }
    'http://www.example.com/1', 'http://b.example/calendar/2026/x',
    'http://b.example/calendar/26/x', 'http://b.example/?utm_source=x&y=1',
    'http://m.example.com/1', 'http://b.example/' . '1/' x 21), @crawler);

is($answer->{status}, 200, 'a crawler adds');
is($answer->{body} =~ s/rule:.*/rule:/r, "0\tnew\thttp://www.example.com/1\n"
    . "-\trejected\trule:\n1\tnew\thttp://b.example/calendar/26/x\n"
    . "2\tnew\thttp://b.example/?y=1\n0\tseen\thttp://www.example.com/1\n"
    . "-\trejected\tdepth\n", 'by the rules of the examples');
is($t->post('/mark/visited', "0\n", @crawler)->{status}, 200, 'marks');
is($t->forget('/url/2', @crawler)->{status}, 204, 'and deletes');

for ([ GET => '/url/0' ], [ HEAD => '/url/0' ], [ GET => '/url/0,1' ],
    [ POST => '/url', "0\n1\n" ], [ POST => '/seen', "http://x.example/\n" ],
    [ GET => '/seen?url=http://x.example/' ], [ GET => '/urls' ],
    [ GET => '/urls?mark=visited' ], [ GET => '/site/b.example' ],
    [ GET => '/prefix?url=http://b.example/' ], [ GET => '/health' ],
    [ GET => '/normalize?url=http://x.example/' ], [ GET => '/stats' ],
    [ GET => '/metrics' ], [ GET => '/' ], [ GET => '/openapi.yaml' ])
{
    my ($method, $path, $body) = @$_;

    is($t->request($method, $path, $body, @other)->{status}, 200,
        "others read: $method $path");
}

for ([ POST => '/add', "http://w.example/\n" ], [ DELETE => '/url/0' ],
    [ POST => '/mark/visited', "1\n" ], [ DELETE => '/mark/visited', "0\n" ],
    [ POST => '/claim', "0\n" ], [ POST => '/urls', '' ], [ GET => '/log' ],
    [ PUT => '/url/0', 'x' ])
{
    my ($method, $path, $body) = @$_;
    my $r = $t->request($method, $path, $body, @other);

    is($r->{status}, 403, "but do not write: $method $path");
    is($r->{headers}{'content-type'}, 'application/problem+json',
        'the answer is a problem');
}


# --- however it is spelled

my $before = content();

for ([ POST => '/add', "http://w.example/\n" ],
    [ POST => '/mark/visited', "1\n" ], [ DELETE => '/mark/visited', "0\n" ],
    [ DELETE => '/url/0', '' ], [ POST => '/claim', "0\n" ])
{
    my ($method, $path, $body) = @$_;
    my @got;

    for my $spelling ($path, UrlStore::Conf::spellings($path)) {
        my $r = raw($method, $spelling, $body, '192.0.2.1');

        push @got, "$spelling: $r" if $r !~ /^HTTP\S+ 4\d\d /;
    }

    is("@got", '', "refused in every spelling: $method $path");
    is(content(), $before, 'nothing has changed');
}

# of those that crawlers send, some are the same path to nginx

my (%status, @wrong);
my $n = 0;

for my $spelling (UrlStore::Conf::spellings('/add')) {
    my ($status) = raw('POST', $spelling, 'http://s.example/' . $n++ . "\n",
        '10.1.2.3') =~ /^HTTP\S+ (\d+)/;

    $status{$status}++;
    push @wrong, "$spelling $status" if $status !~ /^(?:200|400|404|405|421)$/;
}

is("@wrong", '',
    'a crawler is answered 200, or that there is no such call, or name');
cmp_ok($status{200}, '>=', 5, 'nginx knows some spellings');
cmp_ok($status{404}, '>=', 5, 'others are no endpoint');
is($t->get('/stats')->json->{urls}, $status{200} + 3,
    'each 200 has added one');


# the documents show the same

my ($shown) = slurp("$UrlStore::Test::TOP/docs/operations.md")
    =~ /^((?:    .*\n)*    location = \/add .*\n(?:    .*\n)*)/m;
my ($run) = UrlStore::Conf::text('urlstore', examples => 1)
    =~ /^( +location \/ .*?\n)    \}\n\}/ms;

is($shown =~ s/^ +//mgr, $run =~ s/^ *(?:#.*)?\n?//mgr =~ s/^ +//mgr,
    'docs/operations.md shows it');


# what the store has: URLs, deleted ones, marks

sub content
{
    return join '|', map { $t->get("/urls?$_", @other)->{body} }
        'deleted=1', 'mark=visited';
}


sub status
{
    my ($method, $path, $host) = @_;

    my ($status) = http($t, "$method $path HTTP/1.0\r\n"
        . ($host eq '' ? '' : "Host: $host\r\nOrigin: http://$host\r\n")
        . "\r\n") =~ /^HTTP\S+ (\d+)/;

    return $status;
}


sub raw
{
    my ($method, $path, $body, $client) = @_;

    return http($t, "$method $path HTTP/1.1\r\nHost: localhost\r\n"
        . "Connection: close\r\nX-Client: $client\r\n"
        . "Content-Type: text/plain\r\nContent-Length: " . length($body)
        . "\r\n\r\n$body");
}
