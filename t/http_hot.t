#!/usr/bin/perl

# The hot table of a worker answers what the store would, and never more:
# deletes and marks by other workers, restarts, a zone that gives way to
# another one of its name, ids that are not on disk yet under sync=always, a
# zone that has become read-only, a directory that another server owns, and one
# that begins a new epoch under a running worker.  t/unit/store_hot.c has the
# same for one process.

use strict;
use warnings;

use lib 't/lib';

use IO::Select;

use UrlStore::Test;

need_fault_disk();

my @text = ('Content-Type' => 'text/plain');
my $locations = <<'CONF';
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /mem/ { urlstore_api mem; }
}
CONF


# --- two workers, each with its table

my $conf = <<"CONF";
urlstore_hot 64k;
urlstore_zone u 16m path=%%DIR%%/data sync=100ms marks=m;
urlstore_zone mem 16m;
$locations
CONF

my $t = UrlStore::Test->new(workers => 2)->run($conf);

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
is(all('/seen', @urls), "0\tseen\t$urls[0]\n3\tseen\t$urls[1]\n"
    . "2\tseen\t$urls[2]\n", 'for all workers, beside those that they know');

# a mark is the id's, not the text's

is(marked($t), '0 2', 'the new id does not have the mark of the old one');
is(all('/mark/m', $urls[1]), "3\tset\t$urls[1]\n", 'it is marked');
is(marked($t), '0 2 3', 'and has the mark');
is(all('/mark/m?clear=1', $urls[0]), "0\tclear\t$urls[0]\n", 'one cleared');
is(marked($t), '2 3', 'has it no more');

# hits of both workers are counted, misses are not

my $hits = hits($t);
all('/seen', @urls, 'http://example.com/none');
is(hits($t), $hits + 3 * 2 * @clients, 'hits are counted, and no miss');
is($t->get('/mem/stats')->json->{hot_hits}, 0, 'nor a hit of another zone');

# another zone has other ids; the spelling of a site is its own there

is(all('/mem/seen', $urls[1]), "-\tunseen\t$urls[1]\n", 'not in another zone');
is($t->post('/mem/add', "http://www.example.com/1\n", @text)->{body},
    "0\tnew\thttp://www.example.com/1\n", 'whose first URL has a www.');
is(all('/mem/seen', $urls[0], $urls[1]), "0\tseen\thttp://www.example.com/1\n"
    . "-\tunseen\thttp://www.example.com/2\n", 'and so have all of its site');
is(all('/seen', 'http://www.example.com/1', 'http://www.example.com/4'),
    "0\tseen\t$urls[0]\n-\tunseen\thttp://example.com/4\n",
    'here they have not');

is(all('/seen', 'http://example.org/1'), "-\tunseen\thttp://example.org/1\n",
    'a site that has no URL yet');
is($t->post('/add', "https://www.example.org/1\n", @text)->{body},
    "4\tnew\thttps://www.example.org/1\n", 'has one with a www.');
is(all('/seen', 'https://example.org/1', 'http://example.org/1',
    'http://www.example.org/2', 'http://example.com/4'),
    "4\tseen\thttps://www.example.org/1\n"
    . "-\tunseen\thttp://www.example.org/1\n"
    . "-\tunseen\thttp://www.example.org/2\n"
    . "-\tunseen\thttp://example.com/4\n",
    'each URL has the scheme that was asked for and the www. of its site');

# the site's spelling stays when its first URL is deleted

is($t->forget('/url/0')->{status}, 204, 'the first one deleted');
is(all('/seen', 'http://www.example.com/1'), "-\tunseen\t$urls[0]\n",
    'is unseen in the same spelling');

# more than the table holds

my @many = map { ($_ % 3 ? 'http' : 'https') . "://www.example.net/many/$_" }
    1 .. 3000;
my @first = $t->post('/add', join("\n", @many) . "\n", @text)->{body}
    =~ /^(\d+)\t/mg;

for (1 .. 3) {
    is_deeply([ $t->post('/add', join("\n", @many) . "\n", @text)->{body}
        =~ /^(\d+)\tseen\t/mg ], \@first, 'more than fit have their ids');
}

is_deeply([ $t->post('/add', join("\n", @many) . "\n", @text)->{body}
    =~ /^\d+\tseen\t(.*)\n/mg ], \@many, 'and their spelling');

# as many as fit: entries that are about to be written over are written again

for (1 .. 4) {
    my @again;

    for my $some ([ @many[0 .. 299] ], [ @many[300 .. 799] ]) {
        push @again, $t->post('/add', join("\n", @$some) . "\n", @text)->{body}
            =~ /^(\d+\tseen\t.*)\n/mg;
    }

    is_deeply(\@again, [ map { "$first[$_]\tseen\t$many[$_]" } 0 .. 799 ],
        'those that fit, too');
}

# As long as these, and unseen.  A word of the table has 16 bits of a hash: some
# of so many look-ups meet the bits of another URL.

my %unseen;

for my $k (0 .. 11) {
    my $lines = join '', map { sprintf "http://example.net/%08d\n", $_ }
        5000 * $k + 1 .. 5000 * ($k + 1);

    $unseen{$_}++ for split /\n/,
        $t->post('/seen?brief=1', $lines, @text)->{body};
}

is_deeply(\%unseen, { "-\tunseen" => 60000 }, 'none is taken for another');

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

# another zone of the same name, at a reload

(my $without = $conf) =~ s/^.* u [^\n]*\n//m;
$without =~ s/^.* u; .*\n//m;

ok($t->reload($without), 'reload without the zone');
ok($t->reload($conf =~ s/DIR%%.data/DIR%%\/other/r), 'reload with another one');
ok($t->ready(write => 1), 'ready');
@clients = map { $t->client } 1 .. 12;
$t->{client} = undef;
is(all('/seen', @urls), join('', map { "-\tunseen\t$_\n" } @urls),
    'which has other URLs');
is($t->post('/add', "$urls[2]\n", @text)->{body}, "0\tnew\t$urls[2]\n",
    'and other ids');
is(all('/seen', @urls), "-\tunseen\t$urls[0]\n-\tunseen\t$urls[1]\n"
    . "0\tseen\t$urls[2]\n", 'for all workers');


# --- a disk that waits, then one that fails

my $d = UrlStore::Test->new(workers => 1, disk => 1);

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

my @pending = map { send_to($d, $_, 'http://example.com/late') }
    qw(/add /add /add /seen);

my @early = IO::Select->new(@pending)->can_read(0.6);

is(scalar @early, 0,
    'an id that is not on disk is not answered, by the table neither');

$d->disk('');

my @late = sort map { receive($_) } @pending;

is("@late", join(' ', sort "1\tnew\thttp://example.com/late",
    ("1\tseen\thttp://example.com/late") x 3), 'then to all');

$d->disk('sync 5');
(undef) = $d->post('/add', "http://example.com/lost\n", @text);

ok(wait_until(5, sub { $d->get('/health?write=1')->{status} == 503 }),
    'the disk has failed');
is($d->post('/add', "http://example.com/late\n", @text)->{status}, 503,
    'what the table knows is not added either');
is($d->post('/seen', "http://example.com/late\n", @text)->{body},
    "1\tseen\thttp://example.com/late\n", 'but seen');
$d->disk('');


# --- a directory that another server owns, then one that begins a new epoch

my $first = UrlStore::Test->new(workers => 1)->run(<<"CONF");
urlstore_zone u 16m path=%%DIR%%/data sync=off;
urlstore_zone mem 16m;
$locations
CONF

ok($first->ready(write => 1), 'the owner is ready');
$first->post('/add', "$_\n", @text) for @urls;

my $second = UrlStore::Test->new(workers => 1)->run(<<"CONF");
urlstore_zone u 16m path=$first->{dir}/data sync=off;
urlstore_zone mem 16m;
$locations
CONF

my $all = join '', map { "$_\n" } @urls;
my $seen = "0\tseen\t$urls[0]\n1\tseen\t$urls[1]\n2\tseen\t$urls[2]\n";

ok(wait_until(20, sub { $second->post('/seen', $all, @text)->{body} eq $seen }),
    'a second server has read the URLs');
is($second->get('/health')->json->{status}, 'not-owner', 'not the owner');

$hits = hits($second);
is($second->post('/seen', $all, @text)->{body}, $seen, 'it returns them again');
is(hits($second), $hits + 3, 'from its hot table');
is($second->post('/add', $all, @text)->{status}, 503, 'adds none of them');
is($second->post('/seen', "http://example.com/4\n", @text)->{status}, 503,
    'and denies nothing') for 1, 2;

# what the owner deletes is gone for both

is($first->forget('/url/1')->{status}, 204, 'the owner deletes one');
ok(wait_until(20, sub {
    $second->post('/seen', "$urls[1]\n", @text)->{status} == 503 }),
    'the second server does not return it any more');

# The owner's last record is torn, and the worker of the second server, which
# has not read it, cuts it off: ids begin a new epoch under its hot table.

my $epoch = $second->get('/health')->json->{epoch};
my ($worker) = $second->worker_pids;

kill 'STOP', $worker;
is($first->post('/add', "http://example.com/lost\n", @text)->{body},
    "3\tnew\thttp://example.com/lost\n", 'the owner adds another one');
$first->kill_all;
my ($newest) = (sort glob "$first->{dir}/data/journal.*")[-1];
truncate $newest, (-s $newest) - 7;
kill 'CONT', $worker;

ok($second->ready(write => 1), 'the second server owns the directory');
cmp_ok($second->get('/health')->json->{epoch}, '>', $epoch, 'in a new epoch');
is(($second->worker_pids)[0], $worker, 'the worker is the same');
is($second->post('/add', "http://example.com/other\n" . $all
    . "http://example.com/lost\n", @text)->{body},
    "3\tnew\thttp://example.com/other\n0\tseen\t$urls[0]\n"
    . "4\tnew\t$urls[1]\n2\tseen\t$urls[2]\n"
    . "5\tnew\thttp://example.com/lost\n", 'the lost id is another URL\'s');
is($second->post('/seen', $all . "http://example.com/lost\n", @text)->{body},
    "0\tseen\t$urls[0]\n4\tseen\t$urls[1]\n2\tseen\t$urls[2]\n"
    . "5\tseen\thttp://example.com/lost\n", 'for good');


# the ids of all URLs that have the mark

sub marked
{
    my ($server) = @_;

    return join ' ', $server->get('/urls?mark=m')->{body} =~ /^(\d+)\t/mg;
}


# as /stats and /metrics count them

sub hits
{
    my ($server) = @_;
    my $n = $server->get('/stats')->json->{hot_hits};

    is(($server->get('/metrics')->{body}
        =~ /^urlstore_hot_hits_total\{zone="u"\} (\d+)$/m)[0], $n,
        'the same in /metrics');

    return $n;
}


sub send_to
{
    my ($server, $path, $url) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $server->port) or die "connect: $!";

    print $s "POST $path HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
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
