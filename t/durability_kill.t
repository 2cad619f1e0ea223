#!/usr/bin/perl

# kill -9: of workers, of the whole process group, of the master alone, for
# each sync policy; and at each numbered fault point (src/us_fault.h) if the
# module was built with them.  Clients keep their own record.
#
# US_KILLS=N: N / 6 kills of workers, N / 60 of everything and of the master
# for each policy, and at each fault point; at least 40 and 4.
# `make test-faults` has 60,000.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep time);

use UrlStore::Test;
use UrlStore::Record;

my $kills = $ENV{US_KILLS} || 60;
my $workers = $ENV{US_KILLS_WORKERS} // ($kills < 240 ? 40 : int($kills / 6));
my $group = $ENV{US_KILLS_GROUP} // ($kills < 240 ? 4 : int($kills / 60));
my $master = $ENV{US_KILLS_MASTER} // $group;
my $point = $ENV{US_KILLS_POINT} // int($kills / 60);
my $only = $ENV{US_POINT};                     # one of them
my $faults = $ENV{US_FAULT_MODULE};

sub conf
{
    my ($options) = @_;

    return <<"CONF";
urlstore_zone u 256m path=%%DIR%%/data $options;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF
}

sub fresh
{
    my ($options, %o) = @_;

    my $t = UrlStore::Test->new(workers => 2, log => 'notice',
        globals => 'env US_FAULT; env US_SEGMENT_SIZE;', %o);

    $t->allow_kills;
    $t->allow(qr/the master process is gone/);
    $t->run(conf($options));

    return $t;
}

sub ready
{
    my ($t) = @_;

    return wait_until(20, sub { $t->get('/health')->{status} == 200 });
}

my %done;

# workers

for my $sync (qw(1s always)) {
    my $t = fresh("sync=$sync snapshot=256k");
    ready($t);
    my $rec = UrlStore::Record->new($t);
    my ($n, @faults) = (0);

    while ($n < $workers / 2 && !@faults) {
        sleep 0.005 + rand 0.03;
        $n++ if $t->kill_worker;
        push @faults, @{ $rec->check } if $n % 200 == 0 && ready($t);
    }

    ready($t);
    sleep 0.2;
    $rec->stop;
    $done{workers} += $n;

    is_deeply([ @faults, @{ $rec->check(1) } ], [],
        "sync=$sync: $n workers killed, $rec->{answers} answers kept");
    is_deeply($rec->dense, [], 'ids are dense');
    ok($t->stop, 'stopped');
}

# everything; the master alone

for my $sync (qw(1s always off)) {
    for my $who (qw(group master)) {
        my $count = $who eq 'group' ? $group : $master;
        next if $count < 1;

        my $t = fresh("sync=$sync snapshot=256k");
        ready($t);
        my $rec = UrlStore::Record->new($t);
        my ($n, $slow, @faults) = (0, 0);

        while ($n < $count && !@faults) {
            sleep 0.02 + rand 0.08;

            if ($who eq 'group') {
                $t->kill_all;

            } else {
                my $pid = delete $t->{pid};
                my @children = $t->worker_pids($pid);
                kill 'KILL', $pid;
                waitpid $pid, 0;

                my $start = time;
                wait_until(5, sub {
                    !grep { UrlStore::Test::slurp("/proc/$_/stat", 1)
                            =~ /\) [^ZX] / } @children
                });
                $slow++ if time - $start > 1;
            }

            $n++;
            $t->start;
            push @faults, 'not ready' if !ready($t);
            push @faults, @{ $rec->check } if $n % 5 == 0;
        }

        $rec->stop;
        $done{$who} += $n;

        is_deeply([ @faults, @{ $rec->check(1) } ], [],
            "sync=$sync: $who killed $n times, $rec->{answers} answers kept");
        is_deeply($rec->dense, [], 'ids are dense');
        cmp_ok($slow, '<=', $n / 20, "workers ended in time") if $slow;
        ok($t->stop, 'stopped');

        my $urlstore = "$UrlStore::Test::TOP/build/urlstore";
        $done{verify} .= `$urlstore verify $t->{dir}/data | tail -1`;
    }
}

unlike($done{verify} // '', qr/DAMAGED/, 'the directories are whole');

# at fault points: segments of 64 KiB, so that each is passed often

my @names = qw(- append written tail sync synced seal sealed segment renamed
    replace snapshot snapshot-done drop load loaded role);

# a worker passes these but a few times in its life

my %rare = (seal => 2, sealed => 2, renamed => 2, replace => 1,
    'snapshot-done' => 2, load => 3, loaded => 1);

for my $p (1 .. $#names) {
    last if !$faults || $point < 1;
    next if $only && $only != $p;

    my $load = $names[$p] =~ /^load/;
    local $ENV{US_MODULE} = $faults;

    my $t = UrlStore::Test->new(workers => 2, log => 'notice',
        globals => 'env US_FAULT; env US_SEGMENT_SIZE;',
        env => { US_SEGMENT_SIZE => 65536 });

    $t->allow_kills;
    $t->allow(qr/the master process is gone/);

    my $options = 'snapshot=64k sync='
        . ($p <= 5 ? 'always' : '50ms');

    $t->run(conf($options));
    ready($t);

    my $rec = UrlStore::Record->new($t);
    my ($n, @faults) = (0);
    my $end = time + 60 + 2 * $point;

    while ($n < $point && time < $end && !@faults) {
        $t->kill_all;
        $t->{env}{US_FAULT} = "$p:" . (1 + int rand($rare{$names[$p]} || 5));
        unlink "$t->{dir}/error.log";
        $t->start;

        wait_until($load ? 0.3 : 1 + rand 2, sub {
            (() = $t->error_log =~ /exited on signal 9/g) >= 10;
        });

        $n += () = $t->error_log =~ /exited on signal 9/g;

        $t->kill_all;
        delete $t->{env}{US_FAULT};
        $t->start;
        push @faults, 'not ready' if !ready($t);
        push @faults, @{ $rec->check };
    }

    $rec->stop;
    $done{points} += $n;

    is_deeply([ @faults, @{ $rec->check(1) } ], [],
        "point $p, $names[$p]: $n kills, $rec->{answers} answers kept");
    is_deeply($rec->dense, [], 'ids are dense');
    cmp_ok($n, '>=', $point, 'often enough');
    ok($t->stop, 'stopped');
}

diag("killed: " . join ', ', map { "$_ $done{$_}" }
    grep { $_ ne 'verify' } sort keys %done);
