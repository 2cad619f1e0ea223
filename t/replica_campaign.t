#!/usr/bin/perl

# A primary and two replicas under load, one of them with a directory and a
# proxy before it that cuts connections and changes bytes, while each of them is
# killed, stopped and reloaded at random.  No replica ever denies, or gives an
# id another URL than the primary gave it; in the end all three have the same.
#
# US_REPLICA_KILLS=N (12); make test-replica: 500.  US_SEED=N.

use strict;
use warnings;

use lib 't/lib';
use POSIX ();
use Time::HiRes qw(sleep time);

use UrlStore::Proxy;
use UrlStore::Replica;
use UrlStore::Test;

my $kills = $ENV{US_REPLICA_KILLS} // 12;
my $seed = $ENV{US_SEED} // 0 + time;
my @text = ('Content-Type' => 'text/plain');

srand $seed;
diag "US_SEED=$seed" if $kills > 100;

my $primary = UrlStore::Test->new(log => 'notice');
my $proxy = UrlStore::Proxy->new($primary->port);

$primary->allow_kills;
$primary->run(zone_conf('64m path=%%DIR%%/data sync=100ms snapshot=64k '
    . 'marks=visited'));
ok($primary->ready(write => 1), 'the primary');

my @replicas = map {
    my $t = UrlStore::Test->new(log => 'notice');

    $t->allow_kills;
    $t->run(zone_conf("64m follow=http://127.0.0.1:$_"));
} $primary->port, $proxy->port . ' path=%%DIR%%/copy snapshot=64k';

my $file = $primary->dir . '/acknowledged';
my @load = (load(1), load(2), map { reader($_) } @replicas);


# --- the kills

my %kill = (
    'primary, worker' => sub { $primary->kill_worker },
    'primary, all' => sub { $primary->kill_all; $primary->start },
    'primary, stop' => sub { $primary->stop; $primary->start },
    'primary, reload' => sub { $primary->reload },
    'both' => sub { $_->kill_all, $_->start for $primary, $replicas[0] },
    'replica, worker' => sub { $replicas[rand @replicas]->kill_worker },
    'replica, workers' => sub {
        my $t = $replicas[rand @replicas];
        kill KILL => $t->worker_pids;
    },
    'replica, all' => sub {
        my $t = $replicas[rand @replicas];
        $t->kill_all;
        $t->start;
    },
    'replica, reload' => sub { $replicas[rand @replicas]->reload },
    'cut' => sub { $proxy->mode('cut ~' . 10 ** (2 + int rand 4)) },
    'flip' => sub { $proxy->mode('flip ~' . 10 ** (2 + int rand 4)) },
    'pass' => sub { $proxy->mode('pass') },
);

my %count;

for my $n (1 .. $kills) {
    my @what = sort keys %kill;
    my $what = $what[rand @what];

    sleep 0.05 + rand 0.3;
    $kill{$what}->();
    $count{$what}++;

    next if $n % 50;

    # now and then they come to rest, and clients go on

    $proxy->mode('pass');
    ok(reaches($primary, $_, 30), "$n kills: a replica has what was there")
        or diag $_->get('/health')->{body} for @replicas;
}


# --- the end: all come to rest, and are compared

kill TERM => @load;

for my $pid (@load) {
    waitpid $pid, 0;
    is($? >> 8, 0, 'a client has seen nothing wrong');
}

$proxy->mode('pass');
ok($primary->ready(write => 1), 'the primary goes on');

for my $t (@replicas) {
    ok(level($primary, $t, 30), 'a replica is level')
        or diag $t->get('/health')->{body};
    is(differs($primary, $t, 'visited'), '', 'and has the same');
}

# each URL that was acknowledged, under its id

my (%id, $wrong);

for (split /\n/, slurp($file)) {
    my ($id, $url) = split /\t/;
    $wrong = "$url: $id and $id{$url}" if ($id{$url} //= $id) ne $id;
}

is($wrong, undef, 'no URL was given two ids');
cmp_ok(keys %id, '>', 100, scalar(keys %id) . ' URLs were acknowledged');

for my $t ($primary, @replicas) {
    my @urls = sort keys %id;
    my $bad = 0;

    while (my @some = splice @urls, 0, 1000) {
        my @got = split /\n/, $t->post('/seen',
            join('', map { "$_\n" } @some), @text)->{body};

        $bad += ($got[$_] // '') ne "$id{$some[$_]}\tseen\t$some[$_]"
            for 0 .. $#some;
    }

    is($bad, 0, 'each URL that was acknowledged is there, under its id');
}

diag join ', ', map { "$_: $count{$_}" } sort keys %count if $kills > 100;


# A client of the primary: adds, marks, deletes others' URLs.  What was
# acknowledged and is never deleted is in the file.

sub load
{
    my ($n) = @_;

    my $pid = fork // die "fork: $!";
    return $pid if $pid;

    my $end = 0;
    local $SIG{TERM} = sub { $end = 1 };
    open my $log, '>>', $file or POSIX::_exit(2);
    my $client = $primary->client;
    my $i = 0;

    srand $seed + $n;

    while (!$end) {
        my @urls = map { $i++; "http://h" . int(rand 50)
            . ".example/$n/$i/" . 'x' x rand 30 } 1 .. 1 + rand 60;
        my $r = $client->request('POST', '/add',
            join('', map { "$_\n" } @urls), @text);

        sleep 0.02, next if !$r || $r->{status} != 200;

        my @lines = split /\n/, $r->{body};
        my @ids = map { /^(\d+)\t/ ? $1 : () } @lines;

        POSIX::_exit(3) if @ids != @urls;

        my $gone = rand() < 0.2 ? pop @ids : undef;

        syswrite $log, join '', map { "$ids[$_]\t$urls[$_]\n" } 0 .. $#ids;
        $client->request('DELETE', "/url/$gone") if defined $gone;
        $client->request('POST', '/mark/visited', "$ids[0]\n", @text) if @ids;
        sleep 0.002;
    }

    POSIX::_exit(0);
}


# A client of a replica: asks for what was acknowledged.

sub reader
{
    my ($t) = @_;

    my $pid = fork // die "fork: $!";
    return $pid if $pid;

    my $end = 0;
    local $SIG{TERM} = sub { $end = 1 };
    my $client = $t->client;
    my (%url, %seen, $text, $fh);
    my $rest = '';

    srand $seed + 100;

    while (!$end) {
        sleep 0.01;
        $fh // open($fh, '<', $file) // next;
        seek $fh, 0, 1;

        while (sysread $fh, $text, 65536) {
            $rest .= $text;
            $url{$1} = $2 while $rest =~ s/^(\d+)\t(\S+)\n//;
        }

        my @ids = keys %url or next;
        my $id = $ids[rand @ids];

        for ([ GET => "/url/$id", undef, qr/^\Q$url{$id}\E\n$/ ],
            [ POST => '/seen', "$url{$id}\n", qr/^$id\tseen\t\Q$url{$id}\E\n/ ])
        {
            my ($method, $path, $body, $want) = @$_;
            my $r = $client->request($method, $path, $body, @text);

            next if !$r || !$r->{status} || $r->{status} == 503;
            next if $r->{status} == 200 && $r->{body} =~ $want;

            print STDERR "# $method $path: $r->{status} $r->{body}",
                " instead of $url{$id}\n";
            POSIX::_exit(1);
        }
    }

    POSIX::_exit(0);
}
