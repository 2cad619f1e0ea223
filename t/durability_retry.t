#!/usr/bin/perl

# Retries with an Idempotency-Key while the disk is slow, and after it: what was
# new to a key is in the journal with the ids, so it outlives the client, the
# worker, every process and a restart; and nobody is answered before the disk
# has what the answer says.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep time);
use UrlStore::Test;

need_fault_disk();

my $t = UrlStore::Test->new(disk => 1)->run(<<'CONF');
urlstore_zone u 16m path=%%DIR%%/data sync=always revisit=1m;
urlstore_zone v 16m path=%%DIR%%/other;
add_header X-Pid $pid always;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /v/ { urlstore_api v; }
}
CONF

ok($t->ready(write => 1) && $t->ready(below => '/v', write => 1), 'ready');

my ($r, $start, $sock, $pid);


# --- the client leaves

$t->disk('slow 700');
($sock) = begin('left', 'a');
close $sock;
$start = time;
$r = retry('left', 'a');
cmp_ok(time - $start, '>', 0.2, 'a retry waits as the first try did');
is($r->{body}, "0\tnew\thttp://a.example/\n", 'and gets its answer');
is($r->{headers}{'idempotency-status'}, 'repeated', '  as it says');
$t->disk('');
is($t->post('/v/add', "http://a.example/", 'Idempotency-Key' => 'left')->{body},
    "0\tnew\thttp://a.example/\n", 'another zone has keys of its own');


# --- the worker is killed, between the change and the reply

$t->disk('slow 700');
($sock, $pid) = begin('killed', 'b');
$t->kill_worker(KILL => $pid);
wait_until(5, sub { $r = retry('killed', 'b'); $r->{status} == 200 });
is($r->{body}, "1\tnew\thttp://b.example/\n",
    'the answer outlives its worker');


# --- the disk does not answer: 503, and then the answer of the first try

$t->disk('stall 1');
($sock) = begin('stalled', 'c');
$r = retry('stalled', 'c');
is($r->{status}, 503, 'a disk that stalls');
ok(!exists $r->{headers}{'idempotency-status'}, '  promises nothing');
ok($r->{headers}{'retry-after'}, '  a retry can help');
$t->disk('');
wait_until(20, sub { $r = retry('stalled', 'c'); $r->{status} == 200 });
is($r->{body}, "2\tnew\thttp://c.example/\n", 'it does');


# --- all processes are killed; the server is stopped

for my $how ('kill -9', 'a stop', 'another kill') {
    $r = $t->post('/add', "http://d.example/$how\nhttp://c.example/\n",
        'Idempotency-Key' => 'restart');
    like($r->{body}, qr/\tnew\t.*\n2\tseen\t/, "before $how");

    if ($how eq 'a stop') {
        ok($t->stop, '  it stops');

    } else {
        $t->kill_all;
    }

    ok($t->start && $t->ready(write => 1), "a start after $how");
    is(retry('stalled', 'c')->{body}, "2\tnew\thttp://c.example/\n",
        '  what was new is so again');
    is(retry('stalled', 'c')->{headers}{'idempotency-status'}, 'repeated',
        '  as it says');
    is(retry('another', 'c')->{body}, "2\tseen\thttp://c.example/\n",
        '  to its key alone');
    is($t->post('/add', "http://d.example/$how\nhttp://c.example/\n",
        'Idempotency-Key' => 'restart')->{body}, $r->{body},
        '  and what was last');
}

is($t->get('/stats')->json->{urls}, 6, 'nothing was added twice');
like(slurp($t->dir . '/data/manifest'), qr/^urlstore data 7\n/,
    'the manifest is of version 7');


# --- a batch whose worker is killed at any time

my $batch = join '', map { "http://e.example/$_\n" } 1 .. 5000;

for my $try (1 .. 6) {
    my $client = $t->client;
    my $key = "batch$try";

    $batch =~ s{/(\d+)(?:/\d+)?$}{/$1/$try}mg;
    $pid = $client->request('GET', '/health')->{headers}{'x-pid'};
    $client->_send("POST /add?brief=1 HTTP/1.1\r\nHost: x\r\n"
        . "Idempotency-Key: $key\r\nContent-Length: " . length($batch)
        . "\r\n\r\n$batch");
    sleep 0.005 * $try;
    $t->kill_worker(KILL => $pid);

    if ($try > 4) {
        $t->kill_all;
        ok($t->start && $t->ready(write => 1), 'all processes are killed');
    }

    wait_until(10, sub {
        $r = $t->client->request('POST', '/add?brief=1', $batch,
            'Idempotency-Key' => $key);
        return $r && $r->{status} == 200;
    });
    is(scalar(() = $r->{body} =~ /^\d+\tnew$/mg), 5000,
        'a worker is killed: all is new to the retry');
}


# --- the journal of a server that remembers is read by one that does not

ok($t->stop, 'stop');
$t->run("urlstore_idempotency off;\n" . zone_conf('16m path=%%DIR%%/data '
    . 'sync=always revisit=1m'));
ok($t->ready(write => 1), 'a start without memory');
is(retry('stalled', 'c')->{body}, "2\tseen\thttp://c.example/\n",
    '  knows no keys');
like(slurp($t->dir . '/data/manifest'), qr/^urlstore data 7\n/,
    '  and keeps the version of what it has');


# Sends POST /add of one URL and waits until its reply waits for the disk: its
# connection, and the worker that has it.

sub begin
{
    my ($key, $host) = @_;

    my $client = $t->client;
    my $health = $client->request('GET', '/health');
    my $new = new();

    $client->_send("POST /add HTTP/1.1\r\nHost: x\r\nIdempotency-Key: $key\r\n"
        . "Content-Length: " . length("http://$host.example/") . "\r\n\r\n"
        . "http://$host.example/");

    wait_until(5, sub { new() > $new });

    return (delete $client->{sock}, $health->{headers}{'x-pid'});
}


sub new
{
    return $t->client->request('GET', '/stats')->json->{urls};
}


sub retry
{
    my ($key, $host) = @_;

    return $t->client->request('POST', '/add', "http://$host.example/",
        'Idempotency-Key' => $key)
        // UrlStore::Answer->none('the connection ended');
}
