#!/usr/bin/perl

# What is repaired heals by itself: a start on a full disk, a failed sync of the
# manifest, no descriptors, a removed segment, a moved directory, a disk that
# hangs, also for a new replica, a role whose holder's pid is another process's
# now.  Until then requests that write are refused, and /health and /stats say
# so.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep time);

use UrlStore::Test;

need_fault_disk();

my $lines = corpus('trackawesomelist_md', 6000);
my @mounted;

sub server
{
    my ($options, %o) = @_;

    my $t = UrlStore::Test->new(workers => 2, disk => 1, %o);

    $t->allow(qr/the master process is gone/);    # kill_all()

    return $t->conf(zone_conf("64m path=%%DIR%%/data $options",
        'keepalive_timeout 600s', 'client_max_body_size 8m'));
}


sub stats { return $_[0]->get('/stats')->json }
sub writable { return $_[0]->get('/health?write=1')->{status} == 200 }

sub refused
{
    my ($t, $re) = @_;

    my $r = $t->add($lines, 5000, 1);
    is($r->{status}, 503, '  adds are refused');
    like($r->json->{detail}, $re, '  and why');
    is($t->get('/health')->{status}, 200, '  but it is healthy');
    ok(!writable($t), '  for reading only');
    ok(stats($t)->{stalled}, '  /stats says so');
    is($t->get('/url/0')->{status}, 200, '  reads go on');
    is($t->get('/seen?url=http://never.example/')->{status}, 200,
        '  denials, too');
}


# --- a disk that hangs: this begins first, and waits while the rest runs

my $hung = server('sync=200ms');
my $hung_add;
my $hung_since;

{
    my $t = $hung;
    $t->run;
    ok($t->ready(write => 1), 'ready');
    is($t->add($lines, 0, 100)->{status}, 200, 'added');

    $t->disk('stall 1');
    $hung_since = time;
    $hung_add = fork() // die;

    if ($hung_add == 0) {
        delete $t->{client};
        my $start = time;
        my $r = $t->add($lines, 100, 100);
        my $took = time - $start;
        POSIX::_exit($r->{status} == 503 && $took > 4 && $took < 8 ? 0 : 1);
    }
}

# --- a failed sync of the manifest, at a first start and at a later one

{
    my $t = server('sync=1s');
    $t->allow(qr/\[alert\].*fsync of "manifest\.tmp" failed/);

    $t->disk('manifest 5');
    $t->run;
    ok(wait_until(5, sub { $t->get('/health')->{status} == 200 }),
        'the manifest cannot be synced: ready');
    my $r = $t->add($lines, 0, 1);
    is($r->{status}, 503, '  adds are refused');
    like($r->json->{detail}, qr/manifest\.tmp.*\(5: /, '  and why');
    $t->disk('');
    ok($t->ready(write => 1, within => 3), '  it heals');
    is($t->add($lines, 0, 100)->{status}, 200, '  and goes on');
    $t->kill_all;

    $t->disk('manifest 5');
    $t->start;
    ok(wait_until(5, sub { $t->get('/health')->{status} == 200 }),
        'the same with data');
    refused($t, qr/manifest\.tmp.*\(5: /);
    $t->disk('');
    ok($t->ready(write => 1, within => 3), '  it heals');
    is($t->add($lines, 100, 100)->{status}, 200, '  and goes on');
    ok(!stats($t)->{sync_failed}, '  no sync of data has failed');
    ok($t->stop, 'stopped');
}

# --- a start on a full disk

SKIP: {
    skip('only root can mount', 1) if $> != 0;

    my $t = server('sync=50ms');
    my $data = "$t->{dir}/data";
    mkdir $data;
    skip('no tmpfs', 1) if system("mount -t tmpfs -o size=2m,mode=777 none "
        . "$data 2>/dev/null") != 0;
    push @mounted, $data;

    $t->allow(qr/\[alert\].*(?:No space left|\(28: )/);
    $t->run;
    ok($t->ready(write => 1), 'ready');
    is($t->add($lines, 0, 1000)->{status}, 200, 'added');
    my $urls = stats($t)->{urls};

    # what is no file of the store: not there when it starts

    my $ballast = "$data/snapshot.tmp";
    my $fill = sub {
        open my $fh, '>', $ballast;

        for my $size (65536, 4096, 512) {
            while (defined syswrite($fh, "\0" x $size)) { }
        }
    };

    $fill->();
    $t->kill_all;
    rename $ballast, "$data/journal.ffffffffffffffff.tmp";
    $ballast = "$data/journal.ffffffffffffffff.tmp";
    $t->start;
    ok(wait_until(5, sub { $t->get('/health')->{status} == 200 }),
        'started on a full disk');
    is(stats($t)->{urls}, $urls, '  with all that is there');
    refused($t, qr/\(28: /) if -e $ballast;
    unlink $ballast;
    ok($t->ready(write => 1, within => 3), '  room: it heals');
    is($t->add($lines, 1000, 100)->{status}, 200, '  and goes on');
    ok($t->stop, 'stopped');
    system("umount $data");
    pop @mounted;
}

# --- no descriptors: as many idle clients as there can be

{
    my $t = server('sync=300ms', workers => 1,
        globals => 'worker_rlimit_nofile 70;');
    $t->allow(qr/accept4?\(\) failed \(24: /, qr/\(24: Too many open files\)/);
    $t->run;
    ok($t->ready(write => 1), 'ready');
    is($t->add($lines, 0, 10)->{status}, 200, 'added');
    ok(wait_until(3, sub { stats($t)->{durable} }), 'durable');

    my @idle = grep { $_ } map {
        my $c = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
            PeerPort => $t->port);
        print $c "GET /health HTTP/1.1\r\nHost: x\r\n\r\n" if $c;
        $c;
    } 1 .. 100;

    ok(wait_until(5, sub { $t->error_log =~ /\(24: Too many open/ }),
        'no descriptor is left');
    is($t->add($lines, 10, 10)->{status}, 200, 'adds go on');
    ok(wait_until(3, sub {
        my $s = stats($t);
        return $s->{durable} == $s->{published};
    }), '  and become durable');

    close $_ for @idle;
    ok($t->ready(write => 1), 'some are left again');
    is($t->add($lines, 20, 10)->{status}, 200, '  as before');
    ok(!stats($t)->{sync_failed}, '  no sync has failed');

    # a worker that comes when there is none cannot even begin

    $t->disk('fds 1');
    $t->kill_worker('KILL', ($t->worker_pids)[0]);
    ok(wait_until(5, sub { $t->add($lines, 30, 10)->{status} == 503 }),
        'a new worker finds no descriptor');
    sleep 0.5;
    ok(!writable($t), '  adds are refused');
    $t->disk('');
    ok($t->ready(write => 1, within => 3), '  it heals');
    is($t->add($lines, 40, 10)->{status}, 200, '  and goes on');
    ok(!stats($t)->{sync_failed}, '  no sync has failed');
    ok($t->stop, 'stopped');
}

# --- reads that hang: only who reads waits

{
    my $t = UrlStore::Test->new(workers => 1, disk => 1)->run(<<'CONF');
urlstore_zone u 16m path=%%DIR%%/data sync=always;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location = /log { urlstore_log u; }
}
CONF
    ok($t->ready(write => 1), 'ready');
    is($t->add($lines, 0, 2000)->{status}, 200, 'added');

    my ($file) = glob("$t->{dir}/data/journal.*");
    my $bytes = slurp($file);

    $t->disk('cold 1');
    my $log = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $t->port);
    print $log "GET /log HTTP/1.0\r\n\r\n";
    sleep 0.3;

    my $start = time;
    is($t->get('/url/0')->{status}, 200,
        'a replica reads from a disk that hangs: others are answered');
    is($t->add($lines, 2000, 10)->{status}, 200, '  so are adds');
    cmp_ok(time - $start, '<', 1, '  at once');

    $t->disk('');
    my $got = '';
    ok(wait_until(5, sub {
        sysread $log, $got, 1 << 20, length $got;
        return index($got, $bytes) > 0;
    }), '  it comes back: the replica gets all');

    close $log;
    ok($t->stop, 'stopped');
}

# --- a segment that is removed, the directory that is moved

{
    my $t = server('sync=200ms');
    my $data = "$t->{dir}/data";
    $t->allow(qr/\[alert\].*journal\.\S+ (?:has been removed|is not there)/,
        qr/\[alert\].*the directory is not there any more/);
    $t->run;
    ok($t->ready(write => 1), 'ready');
    is($t->add($lines, 0, 1000)->{status}, 200, 'added');

    my $urls = stats($t)->{urls};
    my $start = time;
    unlink glob("$data/journal.*");
    ok(wait_until(3, sub { $t->error_log =~ /\[alert\].*journal\./ }),
        'the segment is removed, and nothing is written');
    cmp_ok(time - $start, '<', 1.5, '  it is noticed within a second');
    ok($t->ready(write => 1, within => 5), '  what is in memory is written');
    ok(wait_until(3, sub { stats($t)->{snapshots} > 0 }), '  as a snapshot');
    is($t->add($lines, 1000, 1000)->{status}, 200, '  and it goes on');

    my $all = stats($t)->{urls};
    my $ids = join("\n", 0 .. $all - 1) . "\n";
    my $text = $t->post('/url', $ids, Accept => 'text/plain')->{body};
    $t->kill_all;
    $t->start;
    ok($t->ready(write => 1), 'started after kill -9');
    is(stats($t)->{urls}, $all, '  all is there');
    is($t->post('/url', $ids, Accept => 'text/plain')->{body}, $text,
        '  as it was');

    rename $data, "$data-aside";
    ok(wait_until(3, sub { !writable($t) }), 'the directory is moved');
    refused($t, qr/the directory is not there any more/);
    rename "$data-aside", $data;
    ok($t->ready(write => 1, within => 3), '  it is back: it heals');
    is($t->add($lines, 2000, 100)->{status}, 200, '  and goes on');
    ok($t->stop, 'stopped');
}

# --- the pid of a killed worker is that of the next one

SKIP: {
    my $last = '/proc/sys/kernel/ns_last_pid';

    # the file may be writable, and the write refused

    skip('pids cannot be chosen', 1)
        if !-w $last || !eval { spew($last, slurp($last)); 1 };

    my $t = server('sync=200ms', workers => 1);
    $t->run;
    ok($t->ready(write => 1), 'ready');

    my $same = 0;

    for my $try (1 .. 40) {
        my ($pid) = $t->worker_pids;

        # it has the syncer's role, in a sync

        $t->disk('slow 60000');
        $t->add($lines, $try, 1);
        sleep 0.4;

        kill 'STOP', $t->{pid};
        $t->kill_worker('KILL', $pid);
        wait_until(5, sub { slurp("/proc/$pid/stat", 1) =~ /\) Z / });
        $t->disk('');
        spew($last, $pid - 1);
        kill 'CONT', $t->{pid};

        my $now = 0;
        wait_until(5, sub { ($now) = $t->worker_pids; return $now });
        $same = 1 if $now == $pid;
        $t->ready;

        last if $same;
    }

    SKIP: {
        skip('too many other processes begin', 2) if !$same;

        is($t->add($lines, 100, 10)->{status}, 200,
            'a worker with the same pid adds');
        ok(wait_until(5, sub {
            my $s = stats($t);
            return $s->{durable} == $s->{published};
        }), '  and syncs');
    }

    ok($t->stop, 'stopped');
}

# --- the disk that hangs, some seconds later

{
    my $t = $hung;
    waitpid $hung_add, 0;
    is($?, 0, 'an add on a disk that hangs is refused after 5 seconds');
    cmp_ok(time - $hung_since, '>', 4, '  which have passed');

    my $start = time;
    refused($t, qr/has not returned for \d+ seconds/);
    cmp_ok(time - $start, '<', 2, '  all of that at once');
    $t->disk('');
    ok($t->ready(write => 1, within => 3), '  it comes back: it heals');
    like($t->add($lines, 100, 100)->{body}, qr/\tseen\t/,
        '  what was refused had been kept');

    $t->disk('slow 7000');
    is($t->add($lines, 300, 100)->{status}, 200, 'a sync that hangs: written');
    ok(wait_until(8, sub { !writable($t) }), '  refused after some time');
    ok(stats($t)->{stalled}, '  /stats reports it');
    $t->disk('');
    ok($t->ready(write => 1, within => 8), '  it heals');

    ok($t->stop, 'stopped');
}


END {
    my $rc = $?;

    system("umount -l $_ >/dev/null 2>&1") for @mounted;
    $? = $rc;
}
