#!/usr/bin/perl

# SIGKILL at each numbered fault point (src/us_fault.h), by a module built
# with them.  In a round workers kill themselves at the point again and again,
# then all is killed and started whole: all that was answered is there.
# Clients keep their own record, and erase some of what they add.  Each point of
# a segment's end comes twice: where segments are short, and where they are long
# and only erasures begin the next one early.  The last two points are those of
# a living zone to which a reload adds a mark.
#
# US_KILLS_POINT=N: kills at each point (3); US_POINT=P: at that one only.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep time);

use UrlStore::Test;
use UrlStore::Record;

my $kills = $ENV{US_KILLS_POINT} // 3;
my $module = $ENV{US_FAULT_MODULE}
    || "$UrlStore::Test::TOP/build/faults/ngx_http_urlstore_module.so";

plan(skip_all => 'the sanitizers have their own module') if $ENV{US_ASAN};
die "no $module: run make faults\n" if !-e $module;
$ENV{US_MODULE} = $module;

# their names, and up to which passage of it a worker goes on: as many as it
# is sure to come to

my @points = ([], [ append => 5 ], [ written => 5 ], [ tail => 5 ],
    [ sync => 5 ], [ synced => 5 ], [ seal => 2 ], [ sealed => 2 ],
    [ segment => 2 ], [ renamed => 2 ], [ replace => 1 ], [ snapshot => 5 ],
    [ 'snapshot-done' => 1 ], [ drop => 1 ], [ load => 2 ], [ loaded => 1 ],
    [ role => 5 ]);
my @declare = ([ 17, 'declare', $kills ], [ 18, 'declared', 1 ]);

my $ROUND = 20;                        # kills in a round
my $STORE = 50;                        # and in one zone, which stays unfilled

# segments of 16 KiB, so that each point is passed often

sub fresh
{
    my ($p, $early) = @_;

    my $t = UrlStore::Test->new(workers => 2, log => 'notice',
        globals => 'env US_FAULT; env US_SEGMENT_SIZE;',
        env => { US_SEGMENT_SIZE => $early ? 1 << 24 : 16384 });

    $t->allow_kills;

    my $sync = $p <= 5 ? 'always' : '50ms';

    return $t->run(zone_conf(
        '64m path=%%DIR%%/data snapshot=' . ($early ? 'off' : '64k')
        . " sync=$sync revisit=1m sets_create=auto erase_within=1s"));
}

# the server as it is: answers must come, and all that came must be right

sub whole
{
    my ($t, $rec) = @_;

    return 'not ready' if !$t->ready;

    my $known = $rec->{answers} + 500;
    my @faults;

    wait_until(5, sub {
        push @faults, @{ $rec->check };
        return @faults || $rec->{answers} > $known;
    });

    return @faults, $rec->{answers} > $known ? () : 'no adds are answered';
}

for my $case ((map { [ $_, 0 ] } 1 .. $#points), map { [ $_, 1 ] } 6 .. 9) {
    my ($p, $early) = @$case;

    next if $ENV{US_POINT} && $ENV{US_POINT} != $p;

    my ($name, $passages) = @{ $points[$p] };
    my ($n, $answers, @faults) = (0, 0);
    my $end = time + 4 * (20 + 2 * $kills);      # as wait_until() has

    while ($n < $kills && time < $end && !@faults) {
        my $t = fresh($p, $early);
        my $rec = UrlStore::Record->new($t, pause => 0.001, claims => 1,
            sets => 40, erase => 1, batch => $p >= 6 && $p <= 13 ? 200 : 20);
        my $here = 0;

        push @faults, whole($t, $rec);

        while ($n < $kills && $here < $STORE && time < $end && !@faults) {
            my $want = $kills - $n < $ROUND ? $kills - $n : $ROUND;
            my $died = 0;

            $t->kill_all;
            $t->{env}{US_FAULT} = "$p:" . (1 + int rand $passages);
            unlink "$t->{dir}/error.log";
            $t->start;

            wait_until(2, sub {
                $died = () = $t->error_log =~ /exited on signal 9/g;
                return $died >= $want;
            });

            $n += $died;
            $here += $died;

            $t->kill_all;
            delete $t->{env}{US_FAULT};
            $t->start;
            push @faults, whole($t, $rec);
        }

        push @faults, $rec->finish;
        $answers += $rec->{answers};
    }

    $name .= ', early' if $early;
    no_faults(\@faults, "point $p, $name: $n kills, $answers answers kept");
    cmp_ok($n, '>=', $kills, 'often enough');
}

# A reload adds a mark, and each worker that declares it dies: at the last point
# one, after which nothing is left to be declared.  Then the mark is there,
# beside all that was answered before.

for (@declare) {
    my ($p, $name, $want) = @$_;
    next if $ENV{US_POINT} && $ENV{US_POINT} != $p;

    my $options = '64m path=%%DIR%%/data snapshot=64k sync=50ms';
    my $t = UrlStore::Test->new(workers => 2, log => 'notice',
        globals => 'env US_FAULT;', env => { US_FAULT => "$p:1" });

    $t->allow_kills;
    $t->run(zone_conf($options));

    my $rec = UrlStore::Record->new($t, pause => 0.001, batch => 20);
    my @faults = whole($t, $rec);
    my $died = 0;

    is($t->post('/mark/visited', "0\n")->{status}, 404,
        "point $p, $name: no mark yet");

    $t->reload(zone_conf("$options marks=visited"));

    wait_until(20 + 2 * $want, sub {
        $died = () = $t->error_log =~ /exited on signal 9/g;
        return $died >= $want;
    });

    $t->kill_all;
    delete $t->{env}{US_FAULT};
    $t->start;
    push @faults, whole($t, $rec);

    my @text = (Accept => 'text/plain');

    ok(wait_until(5, sub {
        $t->post('/mark/visited', "0\n", @text)->{body} =~ /^0\tset/;
    }), 'the mark is there');

    $t->kill_all;
    $t->start;
    push @faults, whole($t, $rec);
    is($t->get('/urls?mark=visited', @text)->{body} =~ tr/\n//, 1,
        'and after a restart');
    push @faults, $rec->finish;

    no_faults(\@faults, "$died kills, $rec->{answers} answers kept");
    cmp_ok($died, '>=', $want, 'often enough');
}

# A replica whose worker dies when it has just built the store: the next worker
# answers from it, and does not build it again.

if (!$ENV{US_POINT} || $ENV{US_POINT} == 15) {
    my $primary = UrlStore::Test->new->run(zone_conf('8m path=%%DIR%%/data'));

    ok($primary->ready, 'point 15, loaded: a primary');

    my $t = UrlStore::Test->new(log => 'notice',
        globals => 'env US_FAULT;', env => { US_FAULT => '15:1' });

    $t->allow_kills;
    $t->run(zone_conf('8m follow=http://127.0.0.1:' . $primary->port . '/'));

    ok(wait_until(10, sub { $t->error_log =~ /exited on signal 9/ }),
        'its replica is killed');
    ok(wait_until(5, sub { $t->get('/health')->{status} == 200 }),
        'and answers');
    is($t->get('/stats')->json->{restarts}, 0, 'without a second fetch');
}
