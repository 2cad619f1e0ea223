#!/usr/bin/perl

# Life under load: a storm of reloads, nginx -t, stop and start, and binary
# upgrades (USR2, then QUIT to the old master).  Clients keep their own record:
# no answered add is lost, no id forks.
#
# US_CYCLES: upgrades (3), half as many stops and starts, reloads tenfold.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep time);

use UrlStore::Test;
use UrlStore::Record;

my $cycles = $ENV{US_CYCLES} || 3;

my $t = UrlStore::Test->new(workers => 2, daemon => 1,
    globals => 'worker_shutdown_timeout 5s;');

$t->run(zone_conf('256m path=%%DIR%%/data sync=100ms snapshot=256k scrub=1s'
    . ' marks=visited sets_create=auto'));

sub halted
{
    my ($pid) = @_;

    return slurp("/proc/$pid/stat", 1) =~ /\) T /;
}

ok($t->ready, 'ready');

my $rec = UrlStore::Record->new($t, sets => 40);
sleep 0.3;

# reloads, with nginx -t in between

my $bad = 0;

for my $n (1 .. 10 * $cycles) {
    $t->signal('HUP');
    $bad++ if $n % 10 == 0 && ($t->check)[0] != 0;
    sleep 0.05;
}

is($bad, 0, 'nginx -t is content');
ok(wait_until(20, sub { $t->worker_pids == 2 }), 'two workers in the end');
no_faults($rec->check, 10 * $cycles . ' reloads');
is($t->get('/stats')->json->{state}, 'ready', 'nothing was loaded again');

# stop and start

my $half = int($cycles / 2) || 1;
my @stops;

for my $n (1 .. $half) {
    push @stops, 'not stopped' if !$t->stop($n % 2 ? 'QUIT' : 'TERM');
    $t->start;
    push @stops, 'not ready' if !$t->ready;
    sleep 0.1;
}

no_faults([ @stops, @{ $rec->check } ], "stopped and started $half times");

# binary upgrades

my (@faults, $slowest, $neither);

for my $n (1 .. $cycles) {
    my $old = $t->pid;

    kill 'USR2', $old;

    push @faults, 'no new master' if !wait_until(10, sub {
        my $new = $t->pid;
        return $new && $new != $old && $t->worker_pids($new) == 2;
    });

    my $new = $t->pid;

    # Both are there: the new one knows what it has read and denies nothing.
    # Who is asked is decided by stopping the workers of the other.

    if ($n == 1) {
        my (%seen, %denied);
        my ($known) = keys %{ $rec->{id} };

        for my $other ($old, $new) {
            my @others = $t->worker_pids($other);

            kill 'STOP', @others;
            wait_until(5, sub { !grep { !halted($_) } @others });

            wait_until(20, sub {
                my $health = $t->client->request('GET', '/health')->json;
                return $health->{status} ne 'loading';
            });

            for (1 .. 50) {
                my $c = $t->client;
                my $health = $c->request('GET', '/health')->json->{status};
                my $seen = $c->request('POST', '/seen', "$known\n");
                my $never = $c->request('POST', '/seen', "http://never.x/$_\n");
                my $url = $c->request('GET', '/url/0');
                my $list = $c->request('GET', '/urls?mark=!visited&limit=1');

                # the answers of one connection are of one process
                $seen{$health}{$seen->{status} . ' '
                    . (split /\t/, $seen->{body})[1]}++
                    if $seen->{status} == 200;
                $denied{$health}{$never->{status}}++;
                $denied{"url $health"}{$url->{status}}++;
                $denied{"list $health"}{$list->{status}}++;
            }

            kill 'CONT', @others;
        }

        is_deeply([ sort keys %denied ], [ 'list not-owner', 'list ready',
            'not-owner', 'ready', 'url not-owner', 'url ready' ],
            'both answer');
        is_deeply([ keys %{ $seen{'not-owner'} } ], [ '200 seen' ],
            'the new one knows a hit');
        is_deeply([ keys %{ $denied{'not-owner'} } ], [ 503 ],
            'and denies nothing');
        is_deeply([ keys %{ $denied{'list not-owner'} } ], [ 503 ],
            'not by a list of marks, either');
        is_deeply([ keys %{ $denied{'url not-owner'} } ], [ 200 ],
            'an id has its URL');
        is_deeply([ keys %{ $denied{ready} } ], [ 200 ], 'the old one denies');
    }

    kill 'QUIT', $old;
    my $start = time;
    push @faults, 'the old one stays' if !wait_until(10, sub {
        !kill 0, $old
    });
    push @faults, 'not ready' if !$t->ready;
    $slowest = time - $start if !$slowest || time - $start > $slowest;

    $t->{pid} = $new;
    push @faults, @{ $rec->check };
    sleep 0.1;
}

$rec->stop;
no_faults([ @faults, @{ $rec->check(1) } ],
    "$cycles upgrades, $rec->{answers} answers kept");
no_faults($rec->dense, 'ids are dense');
cmp_ok($slowest, '<', 15, 'handed over in time');
cmp_ok($t->get('/stats')->json->{snapshots}, '>=', 0, 'snapshots in between');

like(`$UrlStore::Test::TOP/build/urlstore verify $t->{dir}/data | tail -1`,
    qr/^ok/, 'the directory is whole');

# a second server on the same directory

is($t->post('/add', "http://prefix.example/a\n")->{status}, 200, 'a URL');

my $two = UrlStore::Test->new(workers => 1);
$two->run(zone_conf(
    "256m path=$t->{dir}/data sync=100ms marks=visited"));

ok(wait_until(10, sub {
    $two->get('/health')->json->{status} eq 'not-owner'
}), 'a second server does not own the directory');
is($two->get('/url/0')->{status}, 200, 'it answers what it has read');
is($two->post('/add', "http://example.com/\n")->{status}, 503, 'adds nothing');

# neither a list nor a mark: what is not in them is denied

is($two->get($_)->{status}, 503, "no list: $_")
    for qw(/urls /urls?mark=visited /urls?mark=!visited /urls?deleted=1 /set
    /set/visited);
is($two->post('/mark/visited', "0\n")->{status}, 503, 'marks nothing');

# it does not know how many ids there are

my $hit = $two->get('/seen?url=http://prefix.example/a');
is($hit->{status}, 200, 'a hit');
is($hit->json->{next_id}, undef, '  without next_id');
is($two->get('/stats')->json->{next_id}, undef, 'nor has /stats one');
like($two->post('/seen?summary=1', "http://prefix.example/a\n")->{body},
    qr/ next_id=- /, 'nor a summary');

# what the owner deletes is not given, from the moment of its reply

is($two->get('/url/1')->{status}, 200, 'an id');
is($t->forget('/url/1')->{status}, 204, '  is deleted by the owner');
isnt($two->get('/url/1')->{status}, 200, '  and not given any more');
ok(wait_until(5, sub { $two->get('/url/1')->{status} == 410
    && $two->get('/url/0')->{status} == 200 }), '  once read, it is gone');
is($two->get('/seen?url=http://never.example/')->{status}, 503,
    'denies nothing');
is($two->get('/url/99999999')->{status}, 503, 'no id either');
is($two->get('/prefix?url=http://prefix.example/a')->{status}, 200,
    'the URL that was asked for is its own longest prefix');
is($t->post('/add', "http://prefix.example/a/b\n")->{status}, 200,
    'the first adds another one');
is($two->get('/prefix?url=http://prefix.example/a/b/c')->{status}, 503,
    'a prefix that may not be the longest is not answered');

# a request that begins before the second takes over, and ends after

my $slow = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
    PeerPort => $two->port);
my @late = ("http://prefix.example/a/b\n", "http://prefix.example/a\n");

print $slow "POST /seen HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    . "Content-Type: text/plain\r\nContent-Length: "
    . length("@late") . "\r\n\r\n", $late[0];
$slow->flush;
sleep 0.3;

ok($t->stop, 'the first ends');
ok(wait_until(10, sub { $two->get('/health')->{status} == 200 }),
    'the second takes over');

print $slow " $late[1]";
$slow->flush;

my $answer = join '', <$slow>;

like($answer, qr{^HTTP/1.1 503 }, 'what was not found before is not denied');
like($answer, qr/loaded meanwhile/, '  as it may be there now');
like($two->post('/seen', $late[0])->{body}, qr/\tseen\t/, '  and is');
is($two->post('/add', "http://example.com/\n")->{status}, 200, 'and adds');

# before its directory goes with the first one's
ok($two->stop, 'stopped');
