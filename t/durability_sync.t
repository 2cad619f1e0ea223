#!/usr/bin/perl

# Errors of write-back, which Linux reports once to each descriptor that was
# open: whichever process gets it, killed at once or not, of ours or not, what
# is lost never counts as durable.  And scrubs, which read the disk and not what
# the kernel has cached of it.
#
# Once by t/fault/disk.c; and once on a real ext4, on a loop device over a full
# tmpfs, where mounting is possible.

use strict;
use warnings;

use lib 't/lib';
use IO::Handle;
use Time::HiRes qw(sleep);

use UrlStore::Test;

use IO::Socket::INET;

need_fault_disk();

my $lines = corpus('trackawesomelist_md', 6000);
my @mounted;

sub server
{
    my ($options) = @_;

    return UrlStore::Test->new(workers => 2, disk => 1)
        ->conf(zone_conf("64m path=%%DIR%%/data $options"));
}


sub durable
{
    my ($t) = @_;

    my $s = $t->get('/stats')->json;
    return $s->{durable} == $s->{published};
}


# the next_id that a request about a known URL reports

sub asked
{
    my ($t, $path) = @_;

    return $t->post($path, "$lines->[0]\n", Accept => 'application/json')
        ->json->{next_id};
}


sub size { return -s (sort glob("$_[0]/journal.*"))[-1] }


# --- by the shim

# next_id has one source: an add reports no more than what was promised when it
# began, as a look-up does, or the number could fall

{
    my $t = server('sync=always');

    $t->run;
    ok($t->ready(write => 1), 'ready');
    is($t->add($lines, 0, 10)->{status}, 200, 'added');

    my $known = $t->get('/stats')->json->{next_id};
    $t->disk('slow 600');
    my $pid = fork() // die;

    if ($pid == 0) {
        delete $t->{client};
        POSIX::_exit($t->add($lines, 100, 50)->{status} == 200 ? 0 : 1);
    }

    ok(wait_until(2, sub { $t->get('/stats')->json->{urls} > $known }),
        'adds are under way');

    for my $path (qw(/seen /add)) {
        is(asked($t, $path), $known, "  $path reports what was promised");
    }

    waitpid $pid, 0;
    is($?, 0, '  which are answered');
    $t->disk('');
    is(asked($t, '/seen'), $t->get('/stats')->json->{urls},
        '  and reported then');
    ok($t->stop, 'stopped');
}

# the first process that reports it is killed at once

{
    my $t = server('sync=500ms');

    $t->allow_kills;
    $t->allow(qr/\[alert\].*(?:is not on the disk|fdatasync of journal)/);
    $t->run;
    ok($t->ready(write => 1), 'ready');
    is($t->add($lines, 0, 100)->{status}, 200, 'added');
    ok(wait_until(5, sub { durable($t) }), 'durable');

    my $size = size("$t->{dir}/data");

    is($t->add($lines, 100, 100)->{status}, 200, 'more, which is not durable');
    $t->disk("writeback 1 die 1 rot $size");

    ok(wait_until(5, sub { $t->error_log =~ /exited on signal 9/ }),
        'write-back failed, and who reported it was killed');
    ok(wait_until(5, sub { $t->get('/stats')->json->{sync_failed} }),
        'another process finds it out');
    ok(!durable($t), '  and it never was durable');

    my $r = $t->add($lines, 300, 1);
    is($r->{status}, 503, '  no adds any more');
    like($r->json->{detail}, qr/until a restart/, '  until a restart');

    $t->disk('');
    ok($t->stop, 'stopped');
}

# one that lives reports it: that is the end of writing, too

{
    my $t = server('sync=500ms');

    $t->allow(qr/\[alert\].*fdatasync of journal/);
    $t->run;
    ok($t->ready(write => 1), 'ready');
    is($t->add($lines, 0, 100)->{status}, 200, 'added');
    $t->disk('writeback 1');
    ok(wait_until(5, sub { $t->get('/stats')->json->{sync_failed} }),
        'write-back failed');
    is($t->add($lines, 300, 1)->{status}, 503, '  no adds any more');
    $t->disk('');
    ok($t->stop, 'stopped');
}

# --- on a real file system

sub run_quiet { return system("$_[0] >/dev/null 2>&1") == 0 }


# URLs that do not compress: more than the pages that tmpfs takes at a time

sub noise
{
    my ($n) = @_;

    return join '', map { "http://h$_.example/" . join('', map {
        sprintf '%08x', rand 2 ** 32 } 1 .. 30) . "\n" } 1 .. $n;
}


# ext4 on a sparse file, in a tmpfs of so many MB

sub mount_ext4
{
    my ($dir, $mb) = @_;

    mkdir "$dir/$_" for qw(tmp ext4);

    return if !run_quiet("mount -t tmpfs -o size=${mb}m none $dir/tmp");
    push @mounted, "$dir/tmp";

    return if !run_quiet("truncate -s 256m $dir/tmp/image")
        || !run_quiet("mkfs.ext4 -q -F -O ^has_journal "
            . "-E lazy_itable_init=1,nodiscard $dir/tmp/image")
        || !run_quiet("mount -o loop $dir/tmp/image $dir/ext4");

    push @mounted, "$dir/ext4";
    mkdir "$dir/ext4/data";
    chown((getpwnam('nobody'))[2, 3], "$dir/ext4/data");

    return 1;
}


sub fill
{
    my ($dir) = @_;

    open my $fh, '>', "$dir/tmp/ballast" or die;

    for my $size (65536, 4096) {
        while (defined syswrite($fh, "\0" x $size)) { }
    }

    close $fh;
}


# Who gets the error: a worker, by its policy; or another program, before the
# workers are killed.  Then there is no sync but the one that a reader of the
# journal asks for (GET /log), so that no worker can be the first.

for my $outsider (0, 1) {
    my $t = UrlStore::Test->new(workers => 2);
    my $data = "$t->{dir}/ext4/data";
    my $sync = sub {
        return if !$outsider;
        my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1:' . $t->port);
        syswrite $s, "GET /log HTTP/1.0\r\n\r\n";
        sysread $s, my $head, 100;
    };

    if ($> != 0 || !mount_ext4($t->{dir}, 24)) {
        pass('no ext4 on a loop device here: by the shim only');
        last;
    }

    $t->allow_kills;
    $t->allow(qr/\[alert\].*(?:is not on the disk|fdatasync of journal)/);
    $t->run(zone_conf("64m path=$data snapshot=off sync="
        . ($outsider ? '1h' : '2s'), 'client_max_body_size 8m'));
    ok($t->ready(write => 1), 'ready on ext4');
    is($t->add($lines, 0, 1000)->{status}, 200, 'added');
    ok(wait_until(5, sub { $sync->(); durable($t) }), 'durable');

    my $known = $t->get('/stats')->json->{urls};

    # written to the cache, which cannot be written back

    fill($t->{dir});
    is($t->post('/add', noise(5000))->{status}, 200, 'more');
    ok(!durable($t), 'not durable');

    if ($outsider) {
        open my $fh, '<', (sort glob("$data/journal.*"))[-1];
        ok(!$fh->sync, 'another program gets the error');
        close $fh;
        open $fh, '<', (sort glob("$data/journal.*"))[-1];
        ok($fh->sync, '  and by its next descriptor does not');
        close $fh;

        my @pids = $t->worker_pids;
        $t->kill_worker('KILL', $_) for @pids;
        ok(wait_until(5, sub {
            my @now = $t->worker_pids;
            return @now == 2 && !grep { my $p = $_; grep { $_ == $p } @pids }
                @now;
        }), '  nor do new workers');
    }

    ok(wait_until(8, sub {
        $sync->();
        return $t->get('/stats')->json->{sync_failed};
    }), 'the loss is found');
    ok(!durable($t), '  nothing of it is durable');
    is($t->add($lines, 4000, 1)->{status}, 503, '  and no more is taken');

    unlink "$t->{dir}/tmp/ballast";
    is($t->add($lines, 4000, 1)->{status}, 503, 'room does not help');

    # what was durable is there after the next start

    $t->kill_all;
    run_quiet("umount $t->{dir}/ext4");
    run_quiet("mount -o loop $t->{dir}/tmp/image $t->{dir}/ext4");
    $t->start;
    ok($t->ready(write => 1), 'started again');
    cmp_ok($t->get('/stats')->json->{urls}, '>=', $known,
        'what was durable is there');
    is($t->add($lines, 1000, 1000)->{status}, 200, 'and it goes on');
    ok($t->stop, 'stopped');
    run_quiet("umount $t->{dir}/ext4");
    run_quiet("umount $t->{dir}/tmp");
}

# a bit that changes below the cache

{
    my $t = UrlStore::Test->new(workers => 1, log => 'notice');
    my $data = "$t->{dir}/ext4/data";

    if ($> != 0 || !mount_ext4($t->{dir}, 64)) {
        pass('no ext4 on a loop device here: see t/unit/life.c');

    } else {
        $t->allow(qr/\[alert\].*snapshot\..* at offset \d+/);
        $t->run(zone_conf(
            "64m path=$data sync=1s snapshot=16k scrub=500ms"));
        ok($t->ready(write => 1), 'ready on ext4');
        is($t->add($lines, 0, 2000)->{status}, 200, 'added');
        ok(wait_until(10, sub { glob("$data/snapshot.0*") }), 'a snapshot');
        ok(wait_until(10, sub {
            $t->get('/stats')->json->{scrubbed_bytes} > 0
        }), 'scrubbed');
        unlike($t->error_log, qr/\[alert\]/, '  it is whole');

        my ($file) = sort glob("$data/snapshot.0*");
        my $cached = slurp($file);
        my $mark = substr $cached, 400, 40;    # of the index, not in a journal

        # in the image, where the file system has put it

        open my $fh, '+<:raw', "$t->{dir}/tmp/image" or die;
        my ($at, $buf) = (0);

        while (sysread($fh, $buf, 1 << 20)) {
            my $i = index $buf, $mark;

            if ($i >= 0) {
                sysseek $fh, $at + $i, 0;
                syswrite $fh, chr(ord($mark) ^ 0x10);
                $at = -1;
                last;
            }

            $at += 1 << 20;
        }

        close $fh;
        is($at, -1, 'a bit of the disk has changed');
        is(slurp($file), $cached, '  which the cache does not show');

        ok(wait_until(10, sub { $t->error_log =~ /\[alert\].*snapshot\./ }),
            'a scrub finds it');
        ok(wait_until(10, sub {
            $t->error_log =~ /snapshot replaces the file.*snapshot up to/s
        }), '  and a snapshot replaces the file');
        ok($t->stop, 'stopped');
        run_quiet("umount $t->{dir}/ext4");
        run_quiet("umount $t->{dir}/tmp");
    }
}


END {
    my $rc = $?;

    for my $dir (reverse @mounted) {
        system("umount -l $dir >/dev/null 2>&1") if slurp('/proc/mounts')
            =~ / \Q$dir\E /;
    }

    $? = $rc;
}
