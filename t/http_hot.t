#!/usr/bin/perl

# The hot table of a worker answers what the store would, and never more:
# deletes and marks by other workers, restarts, ids that are not on disk yet
# under sync=always, a zone that has become read-only.  t/unit/store_hot.c has
# the same for one process.

use strict;
use warnings;

use lib 't/lib';

use IO::Select;

use UrlStore::Test;

my $shim = "$UrlStore::Test::TOP/build/faults/disk.so";

plan(skip_all => 'the sanitizer wants to be loaded first') if $ENV{US_ASAN};
die "no $shim: run make test-programs\n" if !-e $shim;

my @text = ('Content-Type' => 'text/plain');
my $locations = <<'CONF';
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /mem/ { urlstore_api mem; }
}
CONF


# --- two workers, each with its table

my $t = UrlStore::Test->new(workers => 2)->run(<<"CONF");
urlstore_hot 64k;
urlstore_zone u 16m path=%%DIR%%/data sync=100ms marks=m;
urlstore_zone mem 16m;
$locations
CONF

my @urls = map { "http://example.com/$_" } 1 .. 3;

ok($t->ready(write => 1), 'ready');

my @clients = map { $t->client } 1 .. 12;


# what all clients are answered, the same for each, or the first that differs

sub all
{
    my ($path, @lines) = @_;
    my %answers;

    for my $client (@clients, @clients) {
        my $r = $client->request('POST', $path, join("\n", @lines) . "\n",
            @text);
        $answers{$r->{body}} = 1;
    }

    return join '--', sort keys %answers;
}


is($t->post('/add', "$urls[0]\n$urls[1]\n$urls[2]\n", @text)->{body},
    "0\tnew\t$urls[0]\n1\tnew\t$urls[1]\n2\tnew\t$urls[2]\n", 'added');
is(all('/add', @urls), "0\tseen\t$urls[0]\n1\tseen\t$urls[1]\n2\tseen\t"
    . "$urls[2]\n", 'seen by all workers');

is($clients[0]->request('DELETE', '/url/1')->{status}, 204, 'one deleted');
is(all('/seen', @urls), "0\tseen\t$urls[0]\n-\tunseen\t$urls[1]\n2\tseen\t"
    . "$urls[2]\n", 'unseen for all workers');
is(all('/mark/m', @urls), "0\tset\t$urls[0]\n-\tunknown\t$urls[1]\n2\tset\t"
    . "$urls[2]\n", 'and cannot be marked');

is($clients[1]->request('POST', '/add', "$urls[1]\n", @text)->{body},
    "3\tnew\t$urls[1]\n", 'added again: a new id');
is(all('/seen', $urls[1]), "3\tseen\t$urls[1]\n", 'for all workers');

# another zone has other ids; the spelling of a site is its own there

is(all('/mem/seen', $urls[1]), "-\tunseen\t$urls[1]\n", 'not in another zone');
is($t->post('/mem/add', "http://www.example.com/1\n", @text)->{body},
    "0\tnew\thttp://www.example.com/1\n", 'whose first URL has a www.');
is(all('/mem/seen', $urls[0], $urls[1]), "0\tseen\thttp://www.example.com/1\n"
    . "-\tunseen\thttp://www.example.com/2\n", 'and so have all of its site');
is(all('/seen', 'http://www.example.com/1', 'http://www.example.com/4'),
    "0\tseen\t$urls[0]\n-\tunseen\thttp://example.com/4\n",
    'here they have not');

# the site's spelling stays when its first URL is deleted

is($t->forget('/url/0')->{status}, 204, 'the first one deleted');
is(all('/seen', 'http://www.example.com/1'), "-\tunseen\t$urls[0]\n",
    'is unseen in the same spelling');

# more than the table holds

my @many = map { "http://example.net/many/$_" } 1 .. 3000;
my @first = $t->post('/add', join("\n", @many) . "\n", @text)->{body}
    =~ /^(\d+)\t/mg;

for (1 .. 3) {
    is_deeply([ $t->post('/add', join("\n", @many) . "\n", @text)->{body}
        =~ /^(\d+)\tseen\t/mg ], \@first, 'more than fit have their ids');
}

# restarts

ok($t->reload, 'reload');
@clients = map { $t->client } 1 .. 12;
$t->{client} = undef;
is(all('/seen', @urls), "-\tunseen\t$urls[0]\n3\tseen\t$urls[1]\n2\tseen\t"
    . "$urls[2]\n", 'the new workers know the same');

ok($t->stop, 'stop');
$t->start;
ok($t->ready(write => 1), 'ready again');
@clients = map { $t->client } 1 .. 12;
$t->{client} = undef;
is(all('/seen', @urls), "-\tunseen\t$urls[0]\n3\tseen\t$urls[1]\n2\tseen\t"
    . "$urls[2]\n", 'what is on disk is known');
is(all('/mem/seen', $urls[0]), "-\tunseen\t$urls[0]\n", 'what was not is not');


# --- a disk that waits, then one that fails

my $d = UrlStore::Test->new(workers => 1, globals => 'env US_DISK;');

$d->{env} = { LD_PRELOAD => $shim, US_DISK => "$d->{dir}/disk" };
$d->allow(qr/\[alert\]/);
$d->run(<<"CONF");
urlstore_zone u 16m path=%%DIR%%/data sync=always;
urlstore_zone mem 16m;
$locations
CONF

ok($d->ready(write => 1), 'ready');
is($d->post('/add', "http://example.com/old\n", @text)->{body},
    "0\tnew\thttp://example.com/old\n", 'added');

$d->disk('stall 1');

my @pending = map { send_add($d, 'http://example.com/late') } 1 .. 3;

my @early = IO::Select->new(@pending)->can_read(0.6);

is(scalar @early, 0,
    'an id that is not on disk is not answered, by the table neither');

$d->disk('');

my @late = sort map { receive($_) } @pending;

is("@late", join(' ', sort "1\tnew\thttp://example.com/late",
    ("1\tseen\thttp://example.com/late") x 2), 'then to all');

$d->disk('sync 5');
(undef) = $d->post('/add', "http://example.com/lost\n", @text);

ok(wait_until(5, sub { $d->get('/health?write=1')->{status} == 503 }),
    'the disk has failed');
is($d->post('/add', "http://example.com/late\n", @text)->{status}, 503,
    'what the table knows is not added either');
is($d->post('/seen', "http://example.com/late\n", @text)->{body},
    "1\tseen\thttp://example.com/late\n", 'but seen');
$d->disk('');


sub send_add
{
    my ($server, $url) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $server->port) or die "connect: $!";

    print $s "POST /add HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        . "Content-Type: text/plain\r\nContent-Length: "
        . (length($url) + 1) . "\r\n\r\n$url\n";
    $s->flush;

    return $s;
}


sub receive
{
    my ($s) = @_;
    local $/;

    return <$s> =~ /\r\n\r\n(.*)\n\z/s ? $1 : 'no answer';
}
