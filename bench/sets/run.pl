#!/usr/bin/perl

# Sets over HTTP, beside Redis and Valkey, and beside a start without them.
#
#     make bench-sets            [IDS=100000000] [START=10000000]
#                                [MEMBERS=1000000] [ROUNDS=5]
#
#   IDS=0, START=0: without the first part, or the second.
#
#   1. 50 crawls of IDS / 100 URLs each over five times as many different ones,
#      which are in the store before: POST /add?set=NAME, in batches of 1,000,
#      and SADD of 1,000 members to a set of theirs for each crawl.  A crawl's
#      URLs are drawn at random: the worst case here, as those of a crawl that
#      follows links lie together.  For a million each Redis takes 6 GB.
#   2. a start of a service with START URLs, without sets and with 1,000 of
#      MEMBERS / 1,000 members each (a tenth of START in all, if MEMBERS is not
#      given), of which one half follow one another and the other one is drawn
#      at random; both in turn, medians of ROUNDS.
#
# URLs are those of bench/generate.  The figures of build/bench/sets, which is
# bench/sets.c, come first.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../../t/lib";

use File::Temp qw(tempdir);
use List::Util qw(shuffle);
use Time::HiRes qw(time);

use UrlStore::Corpora;
use UrlStore::Cpu;
use UrlStore::Peer;
use UrlStore::Test;

use constant CRAWLS => 50;
use constant SETS => 1000;
use constant BATCH => 1000;

my $ids = $ENV{IDS} // 100_000_000;
my $start = $ENV{START} // 10_000_000;
my $members = $ENV{MEMBERS} // $start / 10;
my $rounds = $ENV{ROUNDS} || 5;
my $top = $UrlStore::Test::TOP;

$| = 1;
$ENV{PATH} .= ':/usr/sbin';
srand 1;

announce($ids / 20 . " and $start");

if ($ids) {
    system("$top/build/bench/sets", $ids) == 0 or die "build/bench/sets\n";
    crawls($ids / 100);
}

starts() if $start;


sub server
{
    my ($options) = @_;

    return UrlStore::Test->new(workers => 1, log => 'warn', judge => 0)
        ->conf(zone_conf($options, 'keepalive_requests 1000000000',
            'client_max_body_size 8m', 'client_body_buffer_size 1m'));
}


sub ask
{
    my ($c, @request) = @_;
    my $answer = $c->request(@request);

    die "@request[0, 1]: $answer->{status} $answer->{body}\n"
        if $answer->{status} !~ /^20[01]$/;

    return $answer;
}


# --- 50 crawls ----------------------------------------------------------

# how the batches of crawl k are made of the order of all URLs

sub each_batch
{
    my ($order, $k, $n, $code) = @_;
    my $from = int($k * @$order / CRAWLS);

    for (my $i = 0; $i < $n; $i += BATCH) {
        my $last = ($i + BATCH < $n ? $i + BATCH : $n) - 1;

        $code->(map { $order->[($from + $_) % @$order] } $i .. $last);
    }
}


sub crawls
{
    my ($n) = @_;
    my @urls;

    open my $fh, '-|', generator(5 * $n) or die "generate: $!";

    while (my $url = <$fh>) {
        chomp $url;
        push @urls, $url;
    }

    my @order = shuffle 0 .. $#urls;

    printf "\n%d crawls of %d URLs each, over %d different ones\n\n%-24s %12s"
        . " %12s %10s %10s\n", CRAWLS, $n, scalar @urls, '', 'bytes',
        'of the sets', 'B a member', 'us a link';

    my $ours = crawls_here(\@urls, \@order, $n);
    my %theirs = map { ($_->name => crawls_peer($_, \@urls, \@order, $n)) }
        peers();

    print about_peers(), "\n";
    printf "1/%.1f of %s's\n", $theirs{$_} / $ours, $_ for sort keys %theirs;
}


sub crawls_line
{
    my ($what, $n, $all, $sets, $cpu) = @_;
    my $members = CRAWLS * $n;

    printf "%-24s %12d %12d %10.2f %10.3f\n", $what, $all, $sets,
        $sets / $members, $cpu / $members * 1e6;

    return $all;
}


sub crawls_here
{
    my ($urls, $order, $n) = @_;
    my $t = server('2g sets=' . CRAWLS)->run;

    $t->ready or die 'not ready';

    my $c = $t->client;
    my ($worker) = $t->worker_pids;

    for (my $i = 0; $i < @$urls; $i += BATCH) {
        my $last = $i + BATCH - 1 < $#$urls ? $i + BATCH - 1 : $#$urls;

        ask($c, POST => '/add?brief=1',
            join '', map { "$_\n" } @$urls[$i .. $last]);
    }

    my $before = $t->get('/stats')->json->{used};
    my $cpu = cpu_of($worker);

    for my $k (0 .. CRAWLS - 1) {
        ask($c, PUT => "/set/crawl-$k");

        each_batch($order, $k, $n, sub {
            ask($c, POST => "/add?brief=1&set=crawl-$k",
                join '', map { "$urls->[$_]\n" } @_);
        });
    }

    $cpu = cpu_since($cpu, $worker);

    my $members = 0;
    my $all = $t->get('/stats')->json->{used};

    $members += $_->{members} for @{ $t->get('/set')->json->{sets} };
    die "$members members\n" if $members != CRAWLS * $n;
    $t->stop;

    return crawls_line('/add?set=', $n, $all, $all - $before, $cpu);
}


sub crawls_peer
{
    my ($peer, $urls, $order, $n) = @_;
    my $dir = tempdir(CLEANUP => 1);
    my $server = $peer->start($dir);
    my $cpu = cpu_of($server->pid);
    my ($before) = $server->memory;

    for my $k (0 .. CRAWLS - 1) {
        each_batch($order, $k, $n, sub {
            $server->pipeline(2, 'SADD', "crawl-$k", @$urls[@_]);
        });
    }

    $server->drain;
    $cpu = cpu_since($cpu, $server->pid);

    my ($all) = $server->memory;
    my $members = 0;

    $members += $server->command('SCARD', "crawl-$_") for 0 .. CRAWLS - 1;
    die "$members members\n" if $members != CRAWLS * $n;
    $server->stop;

    return crawls_line($peer->name . ' SADD', $n, $all - $before,
        $all - $before, $cpu);
}


# --- starts -------------------------------------------------------------

# SIZE for so many URLs and as many members at most, and a third more

sub starts
{
    my $options = int($start * 40 / 2**20 + 64) . 'm path=%%DIR%%/data sets='
        . SETS;
    my @t = map { server($options) } 0, 1;
    my @data = map { "$_->{dir}/data" } @t;

    shell(generator($start) . " | $top/build/urlstore import $data[0]"
        . ' >/dev/null 2>&1');
    shell("cp -r $data[0] $data[1]");
    begin($t[0]);
    $t[0]->stop;

    my $in = fill($t[1]);

    # what a snapshot has costs a start less than what a journal has

    shell("$top/build/bench/sets snapshot $_") for @data;

    my (%cpu, %wall);

    for my $round (1 .. $rounds) {
        for my $i (0, 1) {
            my $from = time;

            begin($t[$i]);
            push @{ $wall{$i} }, time - $from;
            push @{ $cpu{$i} }, cpu_of($t[$i]->worker_pids);

            die "not all sets\n"
                if $t[$i]->get('/stats')->json->{sets} != $i * SETS;

            $t[$i]->stop;
        }
    }

    printf "\n%-40s %9s %9s %12s\n", "a start of $start URLs", 'answers',
        'CPU', 'on disk';

    my @cpu = map { median(@{ $cpu{$_} }) } 0, 1;

    for my $i (0, 1) {
        printf "%-40s %7.2f s %7.2f s %12d\n",
            $i ? SETS . " sets of $in members" : 'no sets',
            median(@{ $wall{$i} }), $cpu[$i],
            (split ' ', `du -sb $data[$i]`)[0];
    }

    printf "CPU: %+.1f %%\n", ($cpu[1] / $cpu[0] - 1) * 100;
}


sub begin
{
    my ($t) = @_;

    $t->run;
    $t->ready(within => 600) or die 'not ready';
}


sub fill
{
    my ($t) = @_;
    my $half = int($members / SETS / 2);

    begin($t);

    my $c = $t->client;

    for my $k (0 .. SETS - 1) {
        ask($c, PUT => "/set/crawl-$k");

        my @ids = (map({ 2 * $k * $half + $_ } 0 .. $half - 1),
            map { int rand $start } 1 .. $half);

        while (my @some = splice @ids, 0, 5000) {
            ask($c, POST => "/set/crawl-$k?brief=1",
                join '', map { "$_\n" } @some);
        }
    }

    my $members = 0;

    $members += $_->{members} for @{ $t->get('/set')->json->{sets} };
    $t->stop;

    return $members;
}


sub shell
{
    my ($command) = @_;

    system('sh', '-c', $command) == 0 or die "$command\n";
}


sub median
{
    return (sort { $a <=> $b } @_)[$#_ / 2];
}
