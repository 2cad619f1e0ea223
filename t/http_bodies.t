#!/usr/bin/perl

# Bodies on their way in: cut into random segments, chunked, in temporary
# files, gzip, slow, vanished.  Each gives the answer of the uncut body.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

use IO::Compress::Gzip ();
use IO::Socket::INET;
use Time::HiRes qw(sleep);

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 128m;
urlstore_zone second 32m;
urlstore_zone kept 16m path=%%DIR%%/kept sync=always;
server {
    listen 127.0.0.1:%%PORT%%;
    client_max_body_size 16m;
    location / { urlstore_api u; }
    location /kept/ { urlstore_api kept; }

    # mirror reads the body before we do, and spills it to a file

    location /file/ {
        client_body_buffer_size 1k;
        mirror /mirror;
        urlstore_api u;
    }

    location /small/ {
        client_body_buffer_size 128;
        urlstore_api u;
    }

    location = /mirror { internal; return 204; }

    location /lower/ { client_max_body_size 1k; urlstore_api u; }
    location = /if { if ($arg_brief) { set $y 1; } urlstore_seen u; }
    location = /except { limit_except GET { allow all; } urlstore_seen u; }

    # both ways: added here and sent on, sent on and added here

    location = /first { mirror /copy; urlstore_add u; }
    location = /copy { internal; proxy_pass $back/second/add; }
    location = /last { mirror /add_copy; proxy_pass $back/second/add; }
    location = /add_copy { internal; urlstore_add u; }
    location /second/ { urlstore_api second; }
    set $back http://127.0.0.1:%%PORT%%;
}
CONF

my @text = ('Content-Type' => 'text/plain');
my @json = ('Content-Type' => 'application/json');

srand(1);

# --- clients that close their half of the connection: the reply to a write that
# waits for the disk comes all the same

ok($t->ready(below => '/kept', write => 1), 'a zone that syncs each write');

my @half = map { UrlStore::Client::raw('127.0.0.1', $t->port, join("\r\n",
    'POST /kept/add HTTP/1.1', 'Host: x', 'Content-Length: 20', '',
    sprintf 'http://half.test/%03d', $_), half_close => 1) } 1 .. 50;

is(scalar(grep { /\tnew\thttp:/ } @half), 50,
    '  half-closed clients are answered');

# --- random cuts; 1,000 of them with US_FULL=1, in small bodies and large

my $cuts = full() ? 1000 : 120;
my @urls = @{ corpus('html_news_blogs_pages', 3000) };

$t->post('/add', join("\n", @urls), @text);

my $json = JSON::PP->new->allow_nonref->latin1;
my @good = grep { !/[^\x20-\x7e]/ } @urls;

my ($wrong, $n) = (0, 0);

for my $i (1 .. $cuts) {
    my $lines = $i % 40 == 0 ? 3000 : 1 + int(rand($i % 10 == 0 ? 600 : 12));
    my $from = int(rand(@good - ($lines > @good ? @good : $lines) + 1));
    my @some = grep { defined } @good[$from .. $from + $lines - 1];

    my ($type, $body) = @{ (
        [ 'text/plain', join("\r\n", @some) ],
        [ 'application/json', $json->encode(\@some) ],
        [ 'application/x-ndjson', join '', map { $json->encode({ url => $_,
            ref => { a => [ 1, "\x{e9}\n" ] } }) . "\n" } @some ],
        [ 'application/x-www-form-urlencoded', join '&', map { 'url='
            . uri_escape($_) } @some ]) [$i % 4] };

    utf8::encode($body) if utf8::is_utf8($body);

    my $whole = $t->post('/seen?summary=1', $body, 'Content-Type' => $type);

    my $head = "POST /seen?summary=1 HTTP/1.1\r\nHost: a\r\n"
        . "Connection: close\r\nContent-Type: $type\r\n";
    my @parts = cut($body, 1 + int(rand(12)));

    my $got;

    if ($i % 3) {
        my $l = length $body;
        $got = send_parts("$head" . "Content-Length: $l\r\n\r\n", @parts);

    } else {
        $got = send_parts("$head" . "Transfer-Encoding: chunked\r\n\r\n",
            cut(join('', map { sprintf("%x\r\n%s\r\n", length, $_) } @parts)
                . "0\r\n\r\n", 1 + int(rand(12))));
    }

    $n++;

    if (($got // '') ne $whole->{body}) {
        diag("cut $i, $type: " . substr($got // 'none', 0, 300));
        $wrong++;
    }
}

is($wrong, 0, "$n bodies, cut and uncut");

# --- 1 byte to 8 MiB

for my $size (1, 2, 100, 4095, 16384, 16385, 100_000, 1 << 20, 8 << 20) {
    my $line = 'http://size.com/' . 'x' x 900;
    my $body = $size < 1000 ? 'y' x $size
        : substr("$line\n" x ($size / length($line) + 1), 0, $size);
    my $lines = () = $body =~ /[^\n]+/g;

    for my $path ('/seen', '/file/seen', '/small/seen') {
        my $r = $t->post("$path?brief=1", $body, @text);
        my $answers = () = $r->{body} =~ /\n/g;
        is("$r->{status} $answers", "200 $lines", "$path with $size bytes");
    }
}

my $r = $t->post('/seen', 'x' x (8 << 20) . "\n", @text);
is($r->{status}, 413, 'a byte more than 8 MiB');
is($r->json->{processed}, 0, 'nothing of it was processed');

for my $path ('/seen', '/if', '/if?brief=1', '/except') {
    my @two = ('x' x 1000 . "\n") x 2500;
    is($t->post($path, join('', @two), @text)->{status}, 200,
        "$path takes what client_max_body_size allows");
    is($t->post($path, sub { shift @two }, @text)->{status}, 200,
        '  chunked, too');
}

$r = $t->post('/lower/seen', 'x' x 2000, @text);
is("$r->{status} $r->{headers}{'content-type'}",
    '413 application/problem+json', "the operator's own limit");
is($r->json->{processed}, 0, '  before anything was applied');
like($r->json->{detail}, qr/ 1024 bytes \(client_max_body_size\)$/,
    '  which is named');
is($t->post('/lower/seen', 'x' x 900, @text)->{status}, 200, 'is kept to');
is($t->post('/seen', "x\n" x 10001, @text)->{status}, 413, '10,001 lines');
is($t->post('/seen?brief=1', "x\n" x 10000, @text)->{status}, 200,
    '10,000 lines');

# --- gzip

my $body = join '', map { "$_\n" } @urls;
my $want = $t->post('/seen', $body, @text)->{body};
my @gzip = (@text, 'Content-Encoding' => 'gzip');

is($t->post('/seen', gzip($body), @gzip)->{body}, $want, 'gzip');
is($t->post('/file/seen', gzip($body), @gzip)->{body}, $want,
    'gzip in a file');
is($t->post('/seen', gzip(substr $body, 0, 5000) . gzip(substr $body, 5000),
    @gzip)->{body}, $want, 'two members');
is($t->post('/seen', $body, @text, 'Content-Encoding' => 'identity')->{body},
    $want, 'identity');

my @parts = cut(gzip($body), 50);
is($t->post('/seen', sub { shift @parts }, @gzip)->{body}, $want,
    'gzip, chunked');

is($t->post('/seen', substr(gzip($body), 0, -9), @gzip)->{status}, 400,
    'gzip without its end');
is($t->post('/seen', $body, @gzip)->{status}, 400, 'no gzip');

my $bomb = gzip("\n" x (64 << 20));
cmp_ok(length $bomb, '<', 100_000, 'a bomb is small');
$r = $t->post('/seen', $bomb, @gzip);
is($r->{status}, 413, 'a gzip bomb');
is($r->json->{processed}, 0, 'processed nothing');
is($t->post('/seen', gzip("x\n" x 10001), @gzip)->{status}, 413,
    'a bomb of items');

# --- mirror: the same body, by us and by another server

for my $path ('/first', '/last') {
    my $name = substr $path, 1;

    for my $n (1, 3000) {
        $r = $t->post($path, join('', map { "http://$name.test/$_/$n\n" }
            1 .. $n), @text);
        is($r->{status}, 200, "$path with $n lines");
    }

    ok(wait_until(10, sub {
        my $seen = 0;

        for my $at ('', '/second') {
            $seen += $t->get("$at/seen?url=http://$name.test/$_/$_")->{body}
                =~ /"seen"/ for 1, 3000;
        }

        return $seen == 4;
    }), '  both have them all');
}

# --- slow and vanished clients

my $s = connect_to();
print $s "POST /add HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\n"
    . "Content-Length: 1000\r\n\r\nhttp://slow.com/1\nhttp://slow.com/";
$s->flush;

sub slow { return $t->get('/seen?url=http://slow.com/1')->json->{status} }

if (routed()) {
    is(slow(), 'unseen', 'a router adds when the body has ended');

} else {
    ok(wait_until(5, sub { slow() eq 'seen' }),
        'a line is applied before the body ends');
}

is($t->get('/seen?url=http://slow.com/')->json->{status}, 'unseen',
    'half a line is not');
is($t->post('/add', "http://other.com/\n", @text)->{status}, 200,
    'a slow client holds nobody up');
close $s;

for (1 .. 50) {
    my $s = connect_to();
    print $s "POST /add HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\n"
        . "Content-Length: 100000\r\n\r\n" . "http://gone.com/$_\n" x 100;
    close $s;
}

is($t->post('/add', "http://here.com/\n", @text)->{status}, 200,
    'clients that went away leave nothing behind');
is(slow(), routed() ? 'unseen' : 'seen',
    'what they had sent is added by a node, not by a router');

# --- pipelining and keep-alive

my $one = "POST /seen?brief=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 18\r\n"
    . "Content-Type: text/plain\r\n\r\nhttp://other.com/\n";
my $last = "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
my $all = $t->http($one x 3 . $last);
is(scalar(() = $all =~ /^\d+\tseen$/mg), 3, 'pipelined batches');
like($all, qr/"status":"ready"/, 'and what follows them');

# --- Expect

like($t->http("POST /seen HTTP/1.1\r\nHost: a\r\nContent-Length: 18\r\n"
    . "Expect: 100-continue\r\nConnection: close\r\n\r\nhttp://slow.com/1\n"),
    qr/^HTTP.1.1 100 .*200 OK/s, 'Expect: 100-continue');
unlike($t->http("POST /seen HTTP/1.1\r\nHost: a\r\nContent-Length: 18\r\n"
    . "Expect: 100-continue\r\nContent-Type: image/png\r\n"
    . "Connection: close\r\n\r\n"), qr/100 Continue/,
    'but not where the body would be refused');

for (['DELETE /set/x', 404], ['GET /seen?url=http://a.com/', 400],
    ['PUT /set/a/b', 400], ['GET /stats', 200])
{
    my ($what, $status) = @$_;
    my $head = "$what HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n";
    my $began = time;

    like($t->http("${head}Expect: 100-continue\r\n\r\n"),
        qr/^HTTP.1.1 $status /, "  nor where no body is read: $what");
    cmp_ok(time - $began, '<', 3, '  and the connection is closed at once');
    like($t->http("$head\r\nGET /$one$last"),
        qr/^HTTP.1.1 $status .*^\d+\tseen$/ms,
        '  a body that came is no request');
}


sub gzip
{
    my ($in) = @_;
    my $out;

    IO::Compress::Gzip::gzip(\$in, \$out) or die;
    return $out;
}


sub cut
{
    my ($body, $n) = @_;
    my @at = sort { $a <=> $b } 0, (map { int(rand(length($body) + 1)) }
        1 .. $n - 1), length $body;

    return grep { length } map { substr $body, $at[$_ - 1],
        $at[$_] - $at[$_ - 1] } 1 .. $#at;
}


sub connect_to
{
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $t->port) or die "connect: $!";
    setsockopt($s, 6, 1, 1);                        # TCP_NODELAY
    return $s;
}


# each part in a segment of its own; the body that comes back

sub send_parts
{
    my ($head, @parts) = @_;

    my $s = connect_to();
    local $/;

    syswrite $s, $head;

    for my $part (@parts) {
        sleep(0.001);

        while (length $part) {
            my $k = syswrite $s, $part or last;
            substr $part, 0, $k, '';
        }
    }

    my $answer = <$s>;
    return $answer =~ s/^.*?\r\n\r\n//sr;
}
