#!/usr/bin/perl

# Retries with an Idempotency-Key while the disk is slow: a reply that waits
# for it is kept before it waits, so that neither its client nor its worker is
# needed any more; and it is sent to nobody before the disk has what it says.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep time);
use UrlStore::Test;

need_fault_disk();

my $t = UrlStore::Test->new(disk => 1)->run(<<'CONF');
urlstore_zone u 16m path=%%DIR%%/data sync=always;
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
is($r->{body}, "0\tnew\thttp://a.example/\n", 'and gets its reply');
is($r->{headers}{'idempotency-status'}, 'replayed', 'not another one');


$t->disk('');
is($t->get('/v/health')->json->{epoch}, $t->get('/health')->json->{epoch},
    'another zone of the same epoch');
$r = $t->post('/v/add', "http://a.example/", 'Idempotency-Key' => 'left');
is($r->{headers}{'idempotency-status'}, 'kept', 'has keys of its own');
$t->disk('slow 700');


# --- the worker is killed

($sock, $pid) = begin('killed', 'b');
$t->kill_worker(KILL => $pid);
wait_until(5, sub { $r = retry('killed', 'b'); $r->{status} == 200 });
is($r->{body}, "1\tnew\thttp://b.example/\n",
    'the reply outlives its worker');
is($r->{headers}{'idempotency-status'}, 'replayed', 'as it was kept');


# --- the disk does not answer: 503, and then the reply of the first try

$t->disk('stall 1');
($sock) = begin('stalled', 'c');
$r = retry('stalled', 'c');
is($r->{status}, 503, 'a disk that stalls');
ok(!exists $r->{headers}{'idempotency-status'}, 'is not what is kept');
ok($r->{headers}{'retry-after'}, 'a retry can help');
$t->disk('');
wait_until(20, sub { $r = retry('stalled', 'c'); $r->{status} == 200 });
is($r->{body}, "2\tnew\thttp://c.example/\n", 'it does');
is($r->{headers}{'idempotency-status'}, 'replayed', 'as it was kept');


# --- a body that takes long: the zone is as it is at its end

$t->allow(qr/\[alert\].*write to journal\.\S+ at \d+ failed/);

my $urls = $t->get('/stats')->json->{urls};
my @pieces = ('http://e.exa', sub {
    $t->disk('write 5');
    is($t->client->request('POST', '/add', "http://d.example/")->{status}, 503,
        'the disk refuses while a body arrives');
    return "mple/\n";
});

$r = $t->client->request('POST', '/add', sub {
    my $piece = shift @pieces;
    return ref $piece ? $piece->() : $piece;
}, 'Idempotency-Key' => 'slow');
is($r->{status}, 503, 'then its request is refused');
ok(!exists $r->json->{processed}, '  before anything is applied');
$t->disk('');
ok($t->ready(write => 1), 'the disk takes writes');
is($t->get('/stats')->json->{urls}, $urls + 1, '  only the other was added');


# --- a restart forgets replies, not URLs

$t->kill_all;
ok($t->start && $t->ready(write => 1), 'a start after kill -9');
$r = retry('stalled', 'c');
is($r->{body}, "2\tseen\thttp://c.example/\n", 'begins without replies');
is($r->{headers}{'idempotency-status'}, 'kept', 'and keeps new ones');


# --- pages of 64 KB, as some machines have

$t->stop;
$t = UrlStore::Test->new(disk => 1);
$t->disk('page 65536');

for (['256k', 1, qr/"256k" of urlstore_idempotency: at least 512k/],
    ['512k', 0, qr/successful/])
{
    my ($size, $rc, $like) = @$_;
    my ($got, $out) = $t->check("urlstore_idempotency $size;\n"
        . zone_conf('16m'));

    is($got, $rc, "an area of $size");
    like($out, $like, '  with its reason');
}

$t->run("urlstore_idempotency 512k;\n" . zone_conf('16m'));
$r = retry('pages', 'f') for 1, 2;
is($r->{headers}{'idempotency-status'}, 'replayed', 'the least area is used');


# Sends POST /add of one URL and waits until its reply waits for the disk: its
# connection, and the worker that has it.

sub begin
{
    my ($key, $host) = @_;

    my $client = $t->client;
    my $health = $client->request('GET', '/health');
    my $kept = kept();

    $client->_send("POST /add HTTP/1.1\r\nHost: x\r\nIdempotency-Key: $key\r\n"
        . "Content-Length: " . length("http://$host.example/") . "\r\n\r\n"
        . "http://$host.example/");

    wait_until(5, sub { kept() > $kept });

    return (delete $client->{sock}, $health->{headers}{'x-pid'});
}


sub kept
{
    return $t->client->request('GET', '/stats')->json->{idempotency_kept};
}


sub retry
{
    my ($key, $host) = @_;

    return $t->client->request('POST', '/add', "http://$host.example/",
        'Idempotency-Key' => $key)
        // UrlStore::Answer->none('the connection ended');
}
