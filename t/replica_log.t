#!/usr/bin/perl

# GET /log: the journal as a stream.  What is sent is what the files have, no
# byte before it is durable; where a stream may begin; how it ends.

use strict;
use warnings;

use lib 't/lib';
use Fcntl qw(:flock);
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(sleep time);

use UrlStore::Test;

my %sync = (a => 'always', b => '1s', c => 'off');

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone a 16m path=%%DIR%%/a sync=always;
urlstore_zone b 16m path=%%DIR%%/b sync=1s marks=visited snapshot=64k;
urlstore_zone c 16m path=%%DIR%%/c sync=off;
urlstore_zone memory 16m;
urlstore_filter filter 1m capacity=1000 error=0.01;
server {
    listen 127.0.0.1:%%PORT%%;
    location /a/ { urlstore_api a; }
    location /b/ { urlstore_api b; }
    location /c/ { urlstore_api c; }
    location /memory/ { urlstore_api memory; }
    location /filter/ { urlstore_api filter; }
    location = /a/log { urlstore_log a; }
    location = /b/log { urlstore_log b; }
    location = /c/log { urlstore_log c; }
    location = /memory/log { urlstore_log memory; }
    location = /filter/log { urlstore_log filter; }
    location /all/ { urlstore_api a; }
    location = /closed { urlstore_log a; deny all; }
    location = /open { urlstore_log a; }
}
CONF

my $dir = $t->dir;

ok($t->ready(below => "/$_"), "zone $_") for qw(a b c);


# --- requests

for (
    [ 404, '/memory/log', qr/has no \\"path\\"/ ],
    [ 404, '/filter/log', qr/a filter has no/ ],
    [ 404, '/a/log/', qr/no such endpoint/ ],
    [ 404, '/all/log?from=x', qr/own, urlstore_log/ ],
    [ 400, '/a/log?from=x', qr/an LSN is expected/ ],
    [ 400, '/a/log?from=-1', qr/an LSN is expected/ ],
    [ 400, '/a/log?at=x', qr/a place that a replica has reached/ ],
    [ 400, '/a/log?at=' . '0' x 32 . '.1.j0.40.0.0.0.0.0&from=0', qr/without/ ],
    [ 400, '/a/log?lsn=0', qr/allowed are: from at/ ],
    [ 410, '/a/log?from=1', qr/the journal ends before it: LSN 1; .log with/ ],
    [ 410, '/a/log?at=' . '0' x 32 . '.1.j0.40.0.0.0.0.0', qr/another store/ ],
    [ 403, '/closed', qr/403/ ],
) {
    my ($status, $path, $like) = @$_;
    my $r = $t->get($path);

    is($r->{status}, $status, "$status $path");
    like($r->{body}, $like, '  says why');
}

is($t->post('/a/log', '')->{status}, 405, 'no POST');
is($t->request('HEAD', '/a/log')->{status}, 200, 'HEAD');
is($t->request('HEAD', '/all/log')->{status}, 404, 'not by urlstore_api');


# --- what is sent is what the files have

for my $zone (sort keys %sync) {
    my $stream = stream("/$zone/log");

    beats($stream, 1);
    is(length $stream->{files}, 0, "sync=$sync{$zone}: nothing yet");

    my $n = 0;

    for my $batch (1 .. 3) {
        $t->post("/$zone/add", join('', map { "http://e$_.example/$batch\n" }
            1 .. 500), 'Content-Type' => 'text/plain');
        $n += 500;

        my $file = sub { slurp("$dir/$zone/journal." . '0' x 16) };

        ok(until_got($stream, sub { $_[0]{ids} == $n
            && length $_[0]{files} && $_[0]{durable} == $_[0]{published} }),
            '  what was added comes');
        ok($stream->{files} eq $file->(), '  as the file has it');
    }

    $t->forget("/$zone/url/7");
    ok(until_got($stream, sub { $_[0]{files} eq slurp("$dir/$zone/journal."
        . '0' x 16) }), '  so does a delete');

    like($stream->{manifest}, qr/^urlstore data 7\nuuid/, "  a manifest");
    like($stream->{head}, qr/Cache-Control: no-store/, '  not to be cached');
    like($stream->{head}, qr/X-Accel-Buffering: no/, '  nor to be kept back');

    my $beats = $stream->{beats};
    until_got($stream, sub { $_[0]{beats} >= $beats + 2 });
    is($stream->{beats}, $beats + 2, '  beats while nothing comes');
}


# --- from an LSN, from a place

my $all = slurp("$dir/a/journal." . '0' x 16);
my $lsn = beats(stream('/a/log'), 1)->{durable};

for my $from (0, 1, int($lsn / 2), $lsn) {
    my $stream = stream("/a/log?from=$from");

    ok(until_got($stream, sub { $_[0]{files} eq $all }),
        "from LSN $from: the segment that has it");
}

is($t->get('/a/log?from=' . ($lsn + 1))->{status}, 410, 'past the end');

my ($uuid) = $t->get('/a/stats')->json->{uuid};
$uuid =~ tr/-//d;

# The first block, as a replica that has it knows it.  The next one says how
# many ids it has: fewer than its request, if it was written meanwhile.

my ($len) = unpack 'x68 V', $all;
my ($ids) = unpack 'x16 Q<', substr $all, 64 + 48 + $len;
my ($crc) = unpack 'V', substr $all, 64 + 44;
my ($seed) = unpack 'x60 V', $all;
my $place = sub {
    my ($c, $given, $blocks) = @_;

    return sprintf '%s.1.j0.%x.%x.%x.%x.%x.%x', $uuid, 64 + 48 + $len, $len,
        $given, $blocks, $c, $seed;
};

my $stream = stream('/a/log?at=' . $place->($crc, $ids, 1));

ok(until_got($stream, sub { $_[0]{files}
    eq substr($all, 0, 64) . substr($all, 64 + 48 + $len) }),
    'from a place: the header, and what follows it') or diag $stream->{head};
is($t->get('/a/log?at=' . $place->($crc ^ 1, $ids, 1))->{status}, 410,
    'not after other bytes');
is($t->get('/a/log?at=' . $place->($crc, $ids - 1, 1))->{status}, 410,
    'nor after other ids');


# --- from nothing: a snapshot first, and then the journal

$t->post('/b/add', join('', map { "http://s$_.example/" . 'x' x 40 . "$_\n" }
    1 .. 8000), 'Content-Type' => 'text/plain');
ok(wait_until(10, sub { slurp("$dir/b/manifest") =~ /^snapshot /m }),
    'a snapshot is taken');

# the owner removes files under this lock; meanwhile no stream begins

open my $readers, '<', "$dir/b/readers" or die;
ok(wait_until(5, sub { flock $readers, LOCK_EX | LOCK_NB }), 'files go');
flock $readers, LOCK_UN;

# nor do those keep any who take none of them

is($t->request('HEAD', '/b/log')->{status}, 200, 'HEAD of what has files');
ok(wait_until(5, sub { $t->get('/b/log?at=' . $place->($crc, $ids, 1))->{status}
    == 410 }), 'a place of another store');
ok(wait_until(5, sub { flock $readers, LOCK_EX | LOCK_NB }), '  keep no file');

my $refused = $t->get('/b/log');
is($refused->{status}, 503, '  a stream is refused');
is($refused->{headers}{'retry-after'}, 1, '  for a moment');
close $readers;

$stream = accepted('/b/log');
ok(until_got($stream, sub { $_[0]{files} =~ /USFT.{44}USJRNL\r\n/s }),
    'the snapshot, then the journal');
ok($stream->{files} =~ /^USSNAP\r\n/, 'in this order');


# --- a client that reads slowly gets all, and in order

$stream = accepted('/b/log', 4096);
sleep 0.3;
ok(until_got($stream, sub { $_[0]{files} =~ /^USSNAP/
    && $_[0]{ids} == 9500 && length $_[0]{files} > 50_000 }, 10), 'slowly');


# --- how it ends: at a reload, by a client, by a kill

$stream = accepted('/b/log');
my $other = stream('/a/log');
beats($stream, 1);
$t->reload;
ok(until_end($stream), 'a reload ends it');
undef $other;

$stream = accepted('/b/log');
beats($stream, 1);
$t->allow_kills;
kill KILL => $t->worker_pids;
ok(until_end($stream), 'so does a kill');
ok($t->ready(below => '/a'), 'there is another worker');
is(beats(stream('/open'), 1)->{ids}, 1500, 'and another stream');

# damage of a file ends it, before it is sent

my $name = "$dir/a/journal." . '0' x 16;
open my $f, '+<', $name or die;
seek $f, 300, 0;
print $f 'damage';
close $f;

$stream = stream('/a/log');
ok(until_end($stream), 'damage ends it');
is(length $stream->{files}, 64, 'before the block');
$t->allow(qr/its journal cannot be sent on/);


sub stream
{
    my ($path, $rcvbuf) = @_;

    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $t->port) or die "connect: $!";
    setsockopt $s, SOL_SOCKET, SO_RCVBUF, pack 'i', $rcvbuf if $rcvbuf;
    print $s "GET $path HTTP/1.0\r\n\r\n";

    return { socket => $s, text => '', files => '', beats => 0, ids => -1 };
}


# The same of a zone that takes snapshots.  The request is refused while the
# owner removes what a snapshot has replaced.  This asks again, as a replica
# does.

sub accepted
{
    my ($path, $rcvbuf) = @_;
    my $s;

    ok(wait_until(10, sub {
        $s = stream($path, $rcvbuf);
        recv $s->{socket}, my $begin, 12, MSG_PEEK;
        return ($begin // '') =~ / 200$/;
    }), "$path: accepted");

    return $s;
}


# reads what is there and takes it apart; undef: the stream has ended

sub take
{
    my ($s, $wait) = @_;

    return 0 if !IO::Select->new($s->{socket})->can_read($wait);
    sysread($s->{socket}, $s->{text}, 65536, length $s->{text}) or return;

    if (!$s->{head}) {
        $s->{text} =~ s/^(HTTP.*?\r\n\r\n)//s or return 1;
        $s->{head} = $1;
    }

    while (length $s->{text} >= 64) {
        my ($magic, $len) = unpack 'a4 V', $s->{text};

        if ($magic eq 'USMF') {
            last if length $s->{text} < 8 + $len;
            $s->{manifest} = substr $s->{text}, 8, $len;
            substr($s->{text}, 0, 8 + $len) = '';

        } elsif ($magic eq 'USBT') {
            @$s{qw(published durable ids)} = unpack 'x8 Q< Q< Q<', $s->{text};
            $s->{beats}++;
            substr($s->{text}, 0, 64) = '';

        } elsif ($magic =~ /^(?:USBK|USFT)$/) {
            last if length $s->{text} < 48 + $len;
            $s->{files} .= substr $s->{text}, 0, 48 + $len, '';

        } else {
            die "what is $magic? $s->{head}$s->{text}"
                if $magic !~ /^(?:USJR|USSN)$/;
            $s->{files} .= substr $s->{text}, 0, 64, '';
        }
    }

    return 1;
}


sub until_got
{
    my ($s, $code, $seconds) = @_;

    my $until = time + ($seconds // 5);

    while (time < $until) {
        return 1 if $code->($s);
        defined take($s, 0.1) or return $code->($s);
    }

    return 0;
}


sub until_end
{
    my ($s) = @_;

    my $until = time + 5;

    while (time < $until) {
        defined take($s, 0.1) or return 1;
    }

    return 0;
}


sub beats
{
    my ($s, $n) = @_;

    until_got($s, sub { $_[0]{beats} >= $n });

    return $s;
}
