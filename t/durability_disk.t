#!/usr/bin/perl

# Disks that refuse: a full one (a small tmpfs), write errors, a failed sync, a
# slow one (t/fault/disk.c).  Adds answer 503 with the reason, reads go on,
# an [alert] and /stats report it; after a full disk the store goes on by
# itself, after a failed sync it is read-only until a restart.
#
# US_CYCLES: how often the disk is filled (3).

use strict;
use warnings;

use lib 't/lib';
use List::Util qw(max);
use Time::HiRes qw(sleep time);

use UrlStore::Test;
use UrlStore::Record;

need_fault_disk();

my $lines = corpus('trackawesomelist_md', 20_000);
my $cycles = $ENV{US_CYCLES} || 3;

sub server
{
    my ($options, $size, @faults) = @_;

    my $t = UrlStore::Test->new(workers => 2, disk => 1, @faults);

    $size //= '64m';

    $t->allow(qr/the master process is gone/);    # kill_all()

    return $t->conf(zone_conf("$size path=%%DIR%%/data $options",
        'client_max_body_size 8m'));
}

# a slow end, while somebody sets the clock: it is waited for

SKIP: {
    skip 'no fault clock', 4 if !-e $UrlStore::Test::FAULT_CLOCK;

    my $t = server('sync=always', '64m', clock => 1)->run;

    ok($t->ready(write => 1), 'ready');
    is($t->add($lines, 0, 100)->{status}, 200, 'added');
    $t->disk('slow 1500');
    $t->clock(-3600);
    ok($t->stop, 'a slow end, with another time of the day');
    unlike($t->error_log, qr/not written in time/, '  is waited for');
    $t->disk('');
}


# write errors: nothing is lost, and it goes on

my $t = server('sync=1s');
$t->allow(qr/\[alert\].*write to journal\.\S+ at \d+ failed/);
$t->run;
ok($t->ready(write => 1), 'ready');
is($t->add($lines, 0, 100)->{status}, 200, 'added');

for my $err (5, 28) {
    $t->disk("write $err");

    my $a = $t->add($lines, 100 * $err, 100);
    is($a->{status}, 503, "errno $err: an add is refused");
    like($a->json->{detail}, qr/journal.*\($err: /, 'with the reason');
    is($a->json->{processed}, 100, 'and what was applied');
    is($a->{headers}{'retry-after'}, 1, 'and when to come again');
    is($t->get('/health?write=1')->{status}, 503, 'not writable');
    is($t->get('/health')->{status}, 200, 'but healthy');
    is($t->get('/stats')->json->{stalled}, JSON::PP::true(),
        '/stats reports it');
    like($t->get('/metrics')->{body}, qr/^urlstore_stalled\{.*\} 1$/m,
        'so does a gauge');
    is($t->get('/url/0')->{status}, 200, 'reads go on');
    is($t->post('/seen', "http://never.example/\n")->{status}, 200,
        'denials, too');

    $t->disk('');
    ok($t->ready(write => 1), 'it goes on by itself');

    $a = $t->add($lines, 100 * $err, 100);
    is($a->{status}, 200, 'the same add is taken');
    unlike($a->{body}, qr/\tnew\t/, 'what was refused had been kept');
}

my $urls = $t->get('/stats')->json->{urls};
$t->kill_all;
$t->start;
ok($t->ready(write => 1), 'started again');
is($t->get('/stats')->json->{urls}, $urls, 'all is there');
ok($t->stop, 'stopped');

# a failed sync

$t = server('sync=always');
$t->allow(qr/\[alert\].*fdatasync of journal\.\S+ failed/);
$t->run;
ok($t->ready(write => 1), 'ready');
is($t->add($lines, 0, 100)->{status}, 200, 'added');

$t->disk('sync 5');
my $a = $t->add($lines, 1000, 10);
is($a->{status}, 503, 'not durable: refused');
like($a->json->{detail}, qr/read-only until a restart.*fdatasync/, 'says why');
is($a->json->{processed}, 10, 'and what was applied');
$t->disk('');
sleep 0.5;
is($t->add($lines, 2000, 10)->{status}, 503, 'it stays read-only');
is($t->get('/url/0')->{status}, 200, 'reads of what is durable go on');
isnt($t->post('/seen', "$lines->[1000]\n")->{status}, 200,
    'what is not durable is not reported');
is($t->get('/stats')->json->{sync_failed}, JSON::PP::true(),
    '/stats reports it');
like($t->get('/metrics')->{body}, qr/^urlstore_sync_failed\{.*\} 1$/m,
    'so does a gauge');
ok($t->reload, 'reloaded');
is($t->add($lines, 2000, 10)->{status}, 503, 'a reload does not help');
$urls = $t->get('/stats')->json->{urls};
ok($t->stop, 'stopped');
$t->start;
ok($t->ready(write => 1), 'a restart does');
is($t->add($lines, 2000, 10)->{status}, 200, 'adds are taken');
is($t->post('/url', join("\n", 0 .. 90), Accept => 'text/plain')->{body}
    =~ tr/\n//, 91, 'what was answered is there');

# a slow one: reads wait for what they would reveal, a second at most

$t->disk('slow 3000');
my $next = $t->get('/stats')->json->{urls};
my $pid = fork() // die;

if ($pid == 0) {
    delete $t->{client};               # a connection of its own
    $t->add($lines, 3000, 5);
    POSIX::_exit(0);
}

ok(wait_until(1, sub { $t->get('/stats')->json->{urls} > $next }),
    'it has its ids');

my $start = time;
$a = $t->post('/seen', "$lines->[3000]\n");
is($a->{status}, 503, 'a read of what is not durable yet');
cmp_ok(time - $start, '>', 0.8, 'has waited');
cmp_ok(time - $start, '<', 3, 'but not until it is');
$t->disk('');
waitpid $pid, 0;
like($t->post('/seen', "$lines->[3000]\n")->{body}, qr/\tseen\t/, 'now it is');
ok($t->stop, 'stopped');

# workers killed while one of them syncs: the next ones do

{
    $t = server('sync=200ms');
    $t->run;
    ok($t->ready(write => 1), 'ready');

    is($t->add($lines, 0, 100)->{status}, 200, 'added');

    $t->disk('slow 60000');
    is($t->add($lines, 100, 100)->{status}, 200, 'written');
    sleep 0.8;

    # the sync goes on; those of workers to come are not slow

    my @pids = $t->worker_pids;
    $t->disk('');
    $t->kill_worker('KILL', $_) for @pids;

    ok($t->ready(write => 1), 'others work');
    ok(wait_until(2, sub {
        my $s = $t->get('/stats')->json;
        return $s->{durable} && $s->{durable} == $s->{published};
    }), 'and sync what was left, though nothing is added');
    ok($t->stop, 'stopped');
}

# more than the ring takes while the disk is slow: the request waits for room

{
    $t = server('sync=always', '1m');
    $t->run;
    ok($t->ready(write => 1), 'ready');

    $t->disk('slow 300');
    my $before = time;
    $a = $t->add($lines, 0, 8000);
    my $took = time - $before;
    $t->disk('');

    is($a->{status}, 200, 'a batch longer than the ring is taken');
    cmp_ok($took, '>', 0.55, 'after more than one sync');

    my %id = map { (split /\t/)[0, 2] } split /\n/, $a->{body};
    delete $id{'-'};
    my @ids = keys %id;
    is(max(@ids), $#ids, 'its ids are dense');

    $t->kill_all;
    $t->start;
    ok($t->ready(write => 1), 'started after kill -9');

    my $all = $t->post('/url', join("\n", @ids) . "\n",
        Accept => 'text/plain')->{body};
    my %now = map { split /\t/ } split /\n/, $all;
    is_deeply(\%now, \%id, 'all of it is there');
    ok($t->stop, 'stopped');
}

# a full disk

SKIP: {
    skip('only root can mount', 1) if $> != 0;

    $t = server('sync=50ms sets_create=auto');
    $t->allow(qr/\[alert\].*journal.* failed/);

    my $data = "$t->{dir}/data";
    mkdir $data;
    skip('no tmpfs', 1) if system("mount -t tmpfs -o size=2m,mode=777 none "
        . "$data 2>/dev/null") != 0;

    $t->run;
    ok($t->ready(write => 1), 'ready');

    my $rec = UrlStore::Record->new($t, pause => 0.005, sets => 40);
    my $first = sub { $t->get('/url/0')->{status} == 200 };
    my ($refused, $again, $read, @faults) = (0, 0, 0);

    for my $n (1 .. $cycles) {
        wait_until(5, $first);
        open my $fh, '>', "$data/ballast";
        $fh->autoflush(1);

        for my $size (65536, 4096, 512) {
            while (defined syswrite($fh, "\0" x $size)) { }
        }

        $refused += wait_until(5, sub {
            $t->get('/health?write=1')->{status} == 503
        });
        $read += $first->();

        close $fh;
        unlink "$data/ballast";

        # a small disk: what the clients have added must not fill it

        $again += $t->ready(write => 1);
        push @faults, @{ $rec->check } if $n % 10 == 0;

        if (-s "$data/journal.0000000000000000" > 700_000) {
            $rec->stop;
            push @faults, @{ $rec->check(1) };
            ok($t->stop, 'stopped');
            unlink glob("$data/*");
            $t->start;
            $t->ready(write => 1);
            $rec = UrlStore::Record->new($t, pause => 0.005, sets => 40);
        }
    }

    $rec->stop;
    is($refused, $cycles, "$cycles times full: adds were refused");
    is($read, $cycles, 'reads went on');
    is($again, $cycles, 'and it went on by itself');

    $t->kill_all;
    $t->start;
    ok($t->ready(write => 1), 'started after kill -9');
    no_faults([ @faults, @{ $rec->check(1) } ],
        "$rec->{answers} answers kept");
    no_faults($rec->dense, 'ids are dense');
    ok($t->stop, 'stopped');
    system("umount $data");
}
