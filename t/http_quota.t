#!/usr/bin/perl

# urlstore_quota: new URLs per client.  The key and the rate belong to the
# zone that holds the clients' buckets; burst belongs to the directive.

use strict;
use warnings;

use lib 't/lib';
use IO::Socket::INET;
use Time::HiRes qw(sleep time);
use UrlStore::Test;

my $t = UrlStore::Test->new(workers => 1)->run(<<'CONF');
urlstore_zone u 32m;
urlstore_filter f 1m capacity=100000 error=0.001;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }

    location = /filter { urlstore_quota $http_x_client 2/h; urlstore_add f; }
    location /off {
        urlstore_quota $http_x_client 1/h;

        location = /off/add { urlstore_quota off; urlstore_add u; }
    }

    location = /named {
        urlstore_quota $http_x_client 60/m burst=10 zone=q:64k;
        urlstore_add u;
    }
    location = /named_too {
        urlstore_quota $http_x_client 60r/m zone=q;
        urlstore_add u;
    }
    location = /hour  { urlstore_quota $http_x_client 1/h; urlstore_add u; }
    location = /hour2 { urlstore_quota $http_x_client 1r/h; urlstore_add u; }
    location = /second {
        urlstore_quota $http_x_client 1000/s burst=1000;
        urlstore_add u;
    }
    location = /other {
        urlstore_quota $http_x_other 1/h;
        urlstore_add u;
    }
    location = /quick { urlstore_quota $http_x_client 10/s; urlstore_add u; }
    location = /third { urlstore_quota $http_x_client 3/h; urlstore_add u; }
    location = /small {
        urlstore_quota $http_x_client 1/h zone=small:64k;
        urlstore_add u;
    }
}
CONF

my $server = <<'CONF';
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

my ($n, $r) = (0);


# --- what a client may add

is(add('/named', 'one', 30)->{status}, 200, 'a batch may overdraw');
$r = add('/named', 'one', 1);
is($r->{status}, 429, 'then there is nothing left');
wait_is($r, 20, 'until 20 of the 30 have drained at 1/s');
is($r->{headers}{'content-type'}, 'application/problem+json', 'a problem');
like($r->json->{detail},
    qr{^over the quota of new URLs: .* holds 30, drains at 60/m .* at 10 or},
    'that says how much was added, and what is allowed') or diag($r->{body});
is($t->get('/seen?url=http://q.example/' . $n)->json->{status}, 'unseen',
    'nothing was added');

is(add('/named', 'two', 5)->{status}, 200, 'another client');
is($t->post('/named', "http://q.example/1\n" x 100, client('two'))->{status},
    200, 'what is seen');
is(add('/named', 'two', 1)->{status}, 200, 'costs nothing');
is(add('/named', undef, 1)->{status}, 200, 'no key, no quota')
    for 1 .. 2;


# batches that begin at once and come slowly: one is admitted

{
    my @open = map {
        my $body = join '', map { 'http://q.example/' . ++$n . "\n" } 1 .. 600;
        my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
            PeerPort => $t->port) or die "connect: $!";
        syswrite $s, "POST /hour HTTP/1.1\r\nHost: a\r\nX-Client: many\r\n"
            . "Connection: close\r\nContent-Type: text/plain\r\n"
            . 'Content-Length: ' . length($body) . "\r\n\r\n";
        [$s, $body]
    } 1 .. 8;

    sleep 0.3;

    my @replies = map {
        my ($s, $body) = @$_;
        local $/;
        syswrite $s, $body;
        scalar <$s>
    } @open;

    is(scalar(grep { m{^HTTP/1.1 200} } @replies), 1, 'one batch of eight');
    is(scalar(grep { m{^HTTP/1.1 429} && /"processed":0/
        && /^Retry-After: 86400\r$/m && /retry in 86400 seconds/ } @replies),
        7, 'the others add nothing, and wait for a day at most');
    is($t->get('/seen?url=http://q.example/' . $n)->json->{status}, 'unseen',
        'nothing of the last one was added');
}


is(add('/filter', 'one', 2)->{status}, 200, 'a filter');
wait_is(add('/filter', 'one', 1), 3600, 'counts what was new to it');
is(add('/off/add', 'one', 5)->{status}, 200, 'off')
    for 1 .. 2;


# --- one zone, one key and rate

$r = add('/named_too', 'two', 1);
is($r->{status}, 429, 'a zone of one name is one bucket for a client');
wait_is($r, 6, 'with a burst of each directive');

is(add('/second', 'three', 5000)->{status}, 200, '5,000 at 1000/s');
$r = add('/second', 'three', 1);
is($r->{status}, 429, 'are too many there');
wait_is($r, 4, 'for four seconds');
is(add('/hour', 'three', 1)->{status}, 200,
    'another rate has buckets of its own');

is(add('/hour2', 'three', 1)->{status}, 429,
    'the same key and rate are the same bucket');
is($t->post('/other', "http://q.example/o\n", client('three'),
    'X-Other' => 'three')->{status}, 200, 'another key is not');


# --- rates are exact

$r = add('/hour', 'three', 1);
wait_is($r, 3600, '1/h is one in 3,600 seconds');

is(add('/third', 'four', 2)->{status}, 200, 'two at 3/h');
wait_is(add('/third', 'four', 1), 2400, 'are 2,400 seconds');

is(add('/hour', 'five', 3)->{status}, 200, 'three at 1/h');
wait_is(add('/hour', 'five', 1), 3 * 3600, 'are three hours');

# what Retry-After says is so

is(add('/quick', 'six', 25)->{status}, 200, '25 at 10/s');
my $start = time;
$r = add('/quick', 'six', 1);
is("$r->{status} $r->{headers}{'retry-after'}", '429 3', 'three seconds');
sleep 2;
is(add('/quick', 'six', 1)->{status}, 429, 'earlier is too early')
    if time - $start < 2.3;
sleep $start + 3.1 - time if time < $start + 3.1;
is(add('/quick', 'six', 1)->{status}, 200, 'then it is accepted');


# --- more clients than a zone has room for: those with least to wait for are
# forgotten, never one that has overdrawn

is(add('/small', 'debtor', 100)->{status}, 200, 'a hundred hours');

for my $i (1 .. 3000) {
    $r = add('/small', "c$i", 1);
    fail("client $i: $r->{status}"), last if $r->{status} != 200;
}

is(add('/small', 'debtor', 1)->{status}, 429, 'is not forgotten');
like($t->get('/metrics')->{body}, routed()
    ? qr/^urlstore_router_over_quota_total\{.*\} [1-9]/m
    : qr/^urlstore_over_quota_total\{.*\} [1-9]/m,
    'refused requests are counted');


# --- reload

is(add('/hour', 'three', 1)->{status}, 429, 'before a reload');
is(add('/named', 'late', 300)->{status}, 200, 'five minutes');

my $conf = slurp($t->dir . '/nginx.conf');

ok($t->reload, 'reload');
is(add('/hour', 'three', 1)->{status}, 429, 'and after it');
is(add('/named', 'late', 1)->{status}, 429, 'in a named zone, too');

spew($t->dir . '/nginx.conf', $conf =~ s{60r?/m}{60000/m}gr);
ok($t->reload, 'another rate of a named zone');
ok(wait_until(2, sub { add('/named', 'late', 1)->{status} == 200 }),
    'drains what there is');

spew($t->dir . '/nginx.conf',
    $conf =~ s{\$http_x_client (60r?/m)}{\$http_x_other $1}gr);
ok(!$t->reload, 'another key is refused');
my $words = q{urlstore_quota zone "q" uses the key "$http_x_other", }
    . q{but used "$http_x_client" before};

$t->allow(qr/\Q$words\E/);
like($t->error_log, qr/\[emerg\].*\Q$words\E/, 'with words');
spew($t->dir . '/nginx.conf', $conf);
ok($t->reload, 'as it was');


# --- what is refused, with which words

my $rate = 'a number of 1 to 1000000000, then "/s", "/m" or "/h" is expected';
my $room = 'NAME, or NAME:SIZE with at least 8 pages (32k) is expected';

for ([ '$host', 'needs KEY and RATE, or "off"' ],
    [ 'off 1/s', '"off" allows no other parameter' ],
    [ '"" 1/s', 'KEY is empty' ],
    [ '$none 1/s', 'unknown "none" variable' ],
    [ '$host x', qq/invalid rate "x" of urlstore_quota: $rate/ ],
    (map { [ "\$host $_", qq/invalid rate "$_" of urlstore_quota: $rate/ ] }
        '0/s', '-1/s', '1.5/s', '1/d', '1/', '/s', 'r/s', '1rr/s', '1', '1/ss',
        '1000000001/s', '99999999999999999999/h'),
    (map { [ "\$host 1/s burst=$_", qq/invalid value "$_" of parameter /
        . '"burst" of urlstore_quota "$host": a number of 0 to 1000000000 is '
        . 'expected' ] }
        '', 'x', '-1', '1.5', '1000000001', '99999999999999999999'),
    (map { [ "\$host 1/s zone=$_", qq/invalid value "$_" of parameter /
        . qq/"zone" of urlstore_quota "\$host": $room/ ] }
        '', ':1m', 'x:', 'x:1', 'x:x', 'x:-1', 'x:31k', 'x:1m:1m'),
    [ '$host 1/s x', 'invalid parameter "x" of urlstore_quota' ],
    [ '$host 1/s burst=1 burst=2',
        'duplicate parameter "burst" of urlstore_quota' ],
    [ '$host 1/s zone=x:1m zone=x',
        'duplicate parameter "zone" of urlstore_quota' ],
    [ '$host 1/s; urlstore_quota off', 'is duplicate' ],
    [ '$host 1/s zone=x', 'zero size shared memory zone "x"' ],
    [ '$host 1/s zone=u', 'is already declared for a different use' ],
    [ '$host 1/s zone=x:1m; server { urlstore_quota $uri 1/s zone=x; }',
        'urlstore_quota zone "x" has the key "$host", not "$uri"' ],
    [ '$host 1/s zone=x:1m; server { urlstore_quota $host 2/s zone=x; }',
        'urlstore_quota zone "x" has the rate "1/s", not "2/s"' ])
{
    my ($args, $words) = @$_;
    my ($rc, $out) = $t->check(conf($args));

    isnt($rc, 0, "refused: $args");
    like($out, qr/\[emerg\].*\Q$words\E/, '  with the words');
}

for ('$host 1/s', '$host 1000000000/s burst=0', '$host 10r/s burst=1000000000',
    '"$host$uri" 1/h zone=x:32k', '$host 1/s zone=x:1g',
    '$host 1/s zone=x:1m; server { '
        . 'urlstore_quota $host 1r/s zone=x burst=7; }',
    '$host 60/m zone=x:1m; server { urlstore_quota $host 1/s zone=x; }',
    'off')
{
    my ($rc, $out) = $t->check(conf($_));
    is($rc, 0, "accepted: $_") or diag($out);
}


# "nginx -t" touches nothing of a zone

{
    my $peak = 'import resource, subprocess, sys; '
        . 'rc = subprocess.call(sys.argv[1:], stderr=subprocess.DEVNULL); '
        . 'peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss; '
        . 'print(rc, peak)';

    $t->conf(conf('$host 1/s zone=x:512m'));
    local %ENV = %ENV;
    $t->_environ;
    open my $fh, '-|', 'python3', '-c', $peak, $t->_command('-t')
        or die "python3: $!";
    my ($rc, $kilobytes) = split ' ', scalar <$fh>;

    is($rc, 0, 'nginx -t of a large zone');
    cmp_ok($kilobytes, '<', 256 * 1024, '  touches no memory of it');
}


sub conf
{
    my ($args) = @_;

    return "urlstore_zone u 32m;\nurlstore_quota $args"
        . ($args =~ /\}$/ ? "\n$server" : ";\n$server");
}


sub add
{
    my ($path, $client, $urls) = @_;

    return $t->post($path,
        join('', map { 'http://q.example/' . ++$n . "\n" } 1 .. $urls),
        client($client));
}


sub client
{
    my ($name) = @_;

    return ('Content-Type' => 'text/plain',
        defined $name ? ('X-Client' => $name) : ());
}


# a few seconds may have gone by since

sub wait_is
{
    my ($r, $seconds, $what) = @_;

    my $after = $r->{headers}{'retry-after'} // 'none';

    ok($after =~ /^\d+$/ && $after <= $seconds && $after > $seconds - 3, $what)
        or diag("Retry-After: $after");
}
