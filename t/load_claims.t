#!/usr/bin/perl

# Claims are linearizable: four clients ask for 500 URLs with older=2m, in
# batches, while workers are killed by SIGKILL, the configuration is reloaded,
# all processes are killed at once, and the clock goes on by a minute, or goes
# back, several times a second.  Each answer is recorded with the time and the
# clock before the request and after the reply.  Then, for each URL:
#
#   - a claim is reported as the one before by one `due` only: in each period
#     the URL is answered `due` at most once;
#   - `due` comes when more than 2 minutes have passed on the clock, and `seen`
#     when not;
#   - who asks after a reply came sees the claim of that reply, or a later one;
#   - at the end, each URL that is asked for by all at once is due to one.
#
# US_OPS is the number of answers (30,000); make test-claims asks for 400,000.

use strict;
use warnings;

use lib 't/lib';

use List::Util qw(max shuffle);
use Time::HiRes qw(sleep time);

use UrlStore::Test;
use UrlStore::Client;

need_fault_clock();

my $OPS = $ENV{US_OPS} || 30_000;
my $CLIENTS = 4;
my $URLS = 500;
my $BATCH = 20;
my $PAUSE = 0.008;                   # between two requests of a client
my $OLDER = 2;                        # minutes, which are units

my $t = UrlStore::Test->new(clock => 1, workers => 2,
    globals => 'worker_shutdown_timeout 5s;')->run(<<'CONF');
urlstore_zone u 32m revisit=1m path=%%DIR%%/data sync=100ms;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

$t->allow_kills;
$t->allow(qr/the master process is|has no master|could not be|refused/);
ok($t->ready(write => 1), 'ready');

my @urls = map { "http://hot.example/$_" } 0 .. $URLS - 1;
my ($ahead, $from) = (0, time);


# The file of the clock has the greatest time so far as well, which the store's
# clock is at most.

sub set_clock
{
    my ($now) = @_;

    sysopen my $fh, $t->dir . '/clock', POSIX::O_RDWR() or die "clock: $!";
    syswrite $fh, pack('qq', $now, $ahead) or die "clock: $!";
    close $fh;
}


# the least and the greatest minute that the server's clock can show

sub minutes
{
    my ($fh) = @_;

    sysseek $fh, 0, 0;
    sysread $fh, my $file, 16;

    return map { int((time + $_) / 60) } unpack 'qq', $file;
}


set_clock(0);


# Whether the store's clock has reached the server's, as at each /add of a new
# URL.  Before the server's clock goes back it must have: clients may have read
# the minute already, and a request that waits would be executed with the
# minutes before.

sub store_clock_follows
{
    my ($n) = @_;

    my $r = $t->client->request('POST', '/add', "http://clock.example/$n\n",
        'Content-Type' => 'text/plain');

    return $r && $r->{status} == 200;
}


# answers for a list of URL numbers; undef: the reply was lost

sub ask
{
    my ($client, @numbers) = @_;

    my $r = $client->request('POST', "/add?older=${OLDER}m&times=1&brief=1",
        join('', map { "$urls[$_]\n" } @numbers),
        'Content-Type' => 'text/plain');

    return undef if !$r || $r->{status} != 200;

    my @lines = split /\n/, $r->{body};

    die "lines: $r->{body}" if @lines != @numbers;

    return [ map { [ split /\t/ ] } @lines ];
}


# --- the clients, each with a file of its own

sub client
{
    my ($n, $ops) = @_;

    srand($n);

    open my $clock, '<', $t->dir . '/clock' or die "clock: $!";
    open my $out, '>', $t->dir . "/history.$n" or die "history: $!";

    my ($client, $done, $lost) = (undef, 0, 0);

    while ($done < $ops) {
        my @numbers = map { int rand $URLS } 1 .. $BATCH;

        $client //= $t->client;
        $client->{no_retry} = 1;

        sleep $PAUSE;

        my ($m0) = minutes($clock);
        my $t0 = time;
        my $answers = ask($client, @numbers);
        my $t1 = time;
        my (undef, $m1) = minutes($clock);

        if (!$answers) {
            $client->disconnect;
            $client = undef;
            $lost++;
            sleep 0.02;
            next;
        }

        for my $i (0 .. $#numbers) {
            my ($id, $status, $claimed) = @{ $answers->[$i] };

            $claimed = $claimed eq '-' ? 0 : $claimed / 60;
            print $out join("\t", $numbers[$i], $i, $status, $claimed, $m0,
                $m1, sprintf('%.6f', $t0), sprintf('%.6f', $t1)), "\n";
        }

        $done += @numbers;
    }

    close $out;

    open $out, '>', $t->dir . "/lost.$n" or die "lost: $!";
    print $out "$lost\n";
    close $out;
}


my %clients;

for my $n (1 .. $CLIENTS) {
    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        eval { client($n, $OPS / $CLIENTS) };
        warn $@ if $@;
        POSIX::_exit($@ ? 1 : 0);
    }

    $clients{$pid} = 1;
}


# --- meanwhile

my ($kills, $reloads, $restarts, $back, $failed) = (0) x 5;

for (my $turn = 1; %clients; $turn++) {
    sleep 0.08;

    $ahead += 60 if $turn % 2 == 0;
    set_clock($ahead);

    if ($turn % 25 == 0 && store_clock_follows($turn)) {
        set_clock($ahead - 300);
        sleep 0.05;
        set_clock($ahead);
        $back++;
    }

    $kills += $t->kill_worker ? 1 : 0 if $turn % 4 == 0;

    if ($turn % 11 == 0) {
        $t->signal('HUP');
        $reloads++;
    }

    if ($turn % 40 == 0) {
        $t->kill_all;
        $t->start;
        $restarts++;
    }

    while ((my $pid = waitpid -1, POSIX::WNOHANG()) > 0) {
        next if !delete $clients{$pid};
        $failed++ if $?;
    }
}

is($failed, 0, 'every client got its answers');


# --- the history

my @history;
my ($answers, $due, $new, $lost) = (0) x 4;

for my $n (1 .. $CLIENTS) {
    for (split /\n/, slurp($t->dir . "/history.$n")) {
        my ($url, @event) = split /\t/;
        push @{ $history[$url] }, \@event;
        $answers++;
    }

    $lost += slurp($t->dir . "/lost.$n");
}

cmp_ok($answers, '>=', $OPS, "$answers answers in a history");


# What is wrong with the events of a URL.  The claims that they have seen only
# grow: after each reply there is a least claim that later requests see.

sub faults
{
    my (@events) = sort { $a->[5] <=> $b->[5] || $a->[0] <=> $b->[0] } @_;
    my (%last, @faults);

    # by the end of the request: [time, the least claim from then on]

    my @ended = sort { $a->[0] <=> $b->[0] } map {
        my ($i, $status, $claimed, $m0, $m1, $t0, $t1) = @$_;
        [ $t1, $status eq 'seen' ? $claimed : $m0 ];
    } @events;

    my $least = 0;

    for (@events) {
        my ($i, $status, $claimed, $m0, $m1, $t0, $t1) = @$_;
        my $what = "$status of $claimed, minutes $m0 to $m1";

        while (@ended && $ended[0][0] < $t0) {
            my (undef, $claim) = @{ shift @ended };
            $least = max($least, $claim) if $claim <= $m0;
        }

        if ($status eq 'new') {
            $new++;
            push @faults, "$what: new twice" if $last{new}++;
            next;
        }

        push @faults, "$what: known to be $least" if $claimed < $least;
        push @faults, "$what: a claim to come" if $claimed > $m1;

        if ($status eq 'due') {
            $due++;
            push @faults, "$what: due twice" if $last{$claimed}++;
            push @faults, "$what: too early" if $m1 - $claimed <= $OLDER;

        } elsif ($status eq 'seen') {
            push @faults, "$what: not due" if $m0 - $claimed > $OLDER;

        } else {
            push @faults, $what;
        }
    }

    return @faults;
}


my @faults;

for my $url (0 .. $URLS - 1) {
    push @faults, map { "$urls[$url]: $_" } faults(@{ $history[$url] // [] });
}

no_faults(\@faults, 'no answer that is wrong');

cmp_ok($due, '>', $URLS, "$due times due, $new new");
cmp_ok($kills, '>', 0, "$kills workers killed, $restarts times all processes, "
    . "$reloads reloads, $back times a clock that went back, $lost replies "
    . 'lost');


# --- at the end: all at once, in different orders

ok($t->ready(write => 1), 'at the end');
set_clock($ahead += 600);
sleep 0.2;

my @pids;

for my $n (1 .. $CLIENTS) {
    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        srand($n);

        my $client = $t->client;
        my @numbers = shuffle 0 .. $URLS - 1;
        my $answers = ask($client, @numbers);

        spew($t->dir . "/end.$n", join '', map { "$numbers[$_]\n" }
            grep { $answers->[$_][1] eq 'due' } 0 .. $#numbers);
        POSIX::_exit(0);
    }

    push @pids, $pid;
}

waitpid $_, 0 for @pids;

my %due;
$due{$_}++ for map { split /\n/, slurp($t->dir . "/end.$_") } 1 .. $CLIENTS;

is(scalar(keys %due), $URLS, 'each URL is due');
is(scalar(grep { $_ > 1 } values %due), 0, 'to one client');

diag(sprintf '%d answers, %d due, %d kills, %d restarts, %d reloads, %.1f s',
    $answers, $due, $kills, $restarts, $reloads, time - $from)
    if $ENV{US_OPS};
