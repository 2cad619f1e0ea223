#!/usr/bin/perl

# kill -9: of workers, of the whole process group, of the master alone, for
# each sync policy.  12 clients keep their own record, of URLs, claims and 200
# sets.  (At numbered points of the code: t/durability_points.t.)
#
# US_KILLS_WORKERS=N, in all (40); US_KILLS_GROUP=N and US_KILLS_MASTER=N, for
# each policy (4).  0: none.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep time);

use UrlStore::Test;
use UrlStore::Record;

my %kills = (
    worker => $ENV{US_KILLS_WORKERS} // 40,
    group => $ENV{US_KILLS_GROUP} // 4,
    master => $ENV{US_KILLS_MASTER} // 4,
);

my %most = (worker => 1000, group => 200, master => 200);   # in a directory

sub fresh
{
    my ($sync) = @_;

    my $t = UrlStore::Test->new(workers => 2, log => 'notice');

    $t->allow_kills;
    $t->allow(qr/the master process is gone/);

    $t->run(zone_conf(
        "256m path=%%DIR%%/data sync=$sync snapshot=256k revisit=1m sets=256"
        . ' sets_create=auto'));

    # soon the ids go past the first level of a set

    my @lines = map { "http://example.com/$_" } 1 .. 65400;

    ok($t->ready(write => 1), 'ready');
    $t->add(\@lines, $_ * 6540, 6540) for 0 .. 9;
    is($t->stats->{next_id}, 65400, 'filled');

    return $t;
}

# each returns faults

my ($seen, $slow) = (0, 0);

my %kill = (
    worker => sub {
        my ($t, $rec) = @_;

        sleep 0.005 + rand 0.06;
        wait_until(5, sub { $t->kill_worker }) or return 'no worker';
        return if ++$seen % 200;
        return $t->ready ? @{ $rec->check } : 'not ready';
    },

    group => sub {
        my ($t, $rec) = @_;

        sleep 0.02 + rand 0.08;
        $t->kill_all;
        $t->start;
        return 'not ready' if !$t->ready;
        return ++$seen % 5 ? () : @{ $rec->check };
    },

    master => sub {
        my ($t, $rec) = @_;

        sleep 0.02 + rand 0.08;

        my $pid = delete $t->{pid};
        my @children = $t->worker_pids($pid);
        kill 'KILL', $pid;
        waitpid $pid, 0;

        my $start = time;
        wait_until(5, sub { !grep { alive($_) } @children });
        $slow++ if time - $start > 3;

        $t->start;
        return 'not ready' if !$t->ready;
        return ++$seen % 5 ? () : @{ $rec->check };
    },
);

for my $who (qw(worker group master)) {
    my @policies = $who eq 'worker' ? qw(1s always) : qw(1s always off);

    for my $sync (@policies) {
        my $want = $who eq 'worker' ? $kills{$who} / 2 : $kills{$who};
        my ($n, $answers, $new, $seen, @faults) = (0, 0, 0, 0);

        next if $want < 1;
        $slow = 0;

        while ($n < $want && !@faults) {
            my $t = fresh($sync);
            push @faults, 'not ready' if !$t->ready;
            my $rec = UrlStore::Record->new($t, pause => 0.02, claims => 1,
                clients => 12, sets => 200);

            wait_until(5, sub {
                push @faults, @{ $rec->check };
                return @faults || $rec->{answers};
            });

            for (my $i = 0; $i < $most{$who} && $n < $want && !@faults; $i++) {
                push @faults, $kill{$who}->($t, $rec);
                $n++;
            }

            push @faults, 'not ready' if !$t->ready;
            push @faults, $rec->finish;
            $answers += $rec->{answers};
            $new += $rec->{new};
            $seen += $rec->{seen};
        }

        no_faults(\@faults,
            "sync=$sync: $who killed $n times, $answers answers kept");
        cmp_ok($answers, '>', 0, 'answers came');
        cmp_ok($new, '>', 0, "$new URLs were new to a set, and $seen seen");
        cmp_ok($slow, '<=', $n / 20, 'the workers ended soon');
    }
}
