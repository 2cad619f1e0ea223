#!/usr/bin/perl

# How long requests wait while a tenth of a store is erased.
#
#     make bench-erase           URLS=N: of so many generated URLs (10000000)
#
# Two clients send requests one after the other, /seen, /add and /url/ID of one
# URL each in turn, and note how long each takes: for a while before, while
# every tenth id is erased in batches of 10,000 and until no byte of them is
# left, and for a while after.  For comparison a third client adds as many URLs
# in batches of 10,000 before it erases.  There are two workers and a
# journal.  Times are in milliseconds.

use strict;
use warnings;

use FindBin;
use POSIX ();
use Time::HiRes qw(sleep time);

use lib "$FindBin::Bin/../../t/lib";
use UrlStore::Corpora;
use UrlStore::Test;

my $urls = $ENV{URLS} || 10_000_000;
my $top = $UrlStore::Test::TOP;
my $alone = 20;                                 # s, before and after
my $clients = 2;
my @text = ('Content-Type' => 'text/plain');

$| = 1;
announce($urls);

my $size = sprintf '%dm', 200 + $urls * 40 / 1e6;
my $t = UrlStore::Test->new(workers => 2, log => 'warn', judge => 0);
my $data = "$t->{dir}/u";

system('bash', '-o', 'pipefail', '-c', generator($urls)
    . " | $top/build/urlstore import $data - 2>/dev/null") == 0 or die;

$t->run(<<"CONF");
keepalive_requests 1000000000;
client_body_buffer_size 1m;
urlstore_zone u $size path=$data erase_within=2m;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

$t->ready(write => 1, within => 300) or die 'not ready';
my $next = $t->get('/stats')->json->{next_id};


# a process that sends requests until it is told to end, and prints how long
# each took

sub client
{
    my ($n) = @_;

    open my $out, '>', "$t->{dir}/times.$n" or die $!;
    my $pid = fork() // die "fork: $!";

    return $pid if $pid;

    my $http = $t->client;
    my $go = 1;
    $SIG{TERM} = sub { $go = 0 };

    srand $n;

    for (my $i = 0; $go; $i++) {
        my $id = int rand $next;
        my $from = time;
        my $r = $http->request($i % 3 == 0 ? (GET => "/url/$id")
            : $i % 3 == 1 ? (GET => "/seen?url=http://a.example/$id")
            : (POST => '/add', "http://b$n.example/$i", @text));

        die "status $r->{status}" if $r->{status} !~ /^(200|410)$/;
        printf $out "%.6f %.3f\n", $from, 1e3 * (time - $from);
    }

    close $out or die $!;
    POSIX::_exit(0);
}

my @pids = map { client($_) } 1 .. $clients;
my @phases;

sub phase { push @phases, { name => $_[0], from => time } }

phase('before');
sleep $alone;

# a batch takes the same turns, and the lock, whatever it does

my $batches = $t->client;

sub batches
{
    my ($path, $status, $line) = @_;

    for (my $id = 0; $id < $next; $id += 100_000) {
        my @ids = grep { $_ < $next } map { $id + 10 * $_ } 0 .. 9999;
        my $r = $batches->request(POST => "$path?brief=1",
            join("\n", map { $line->($_) } @ids), @text);

        die "status $r->{status}: $r->{body}" if $r->{status} != $status;
    }
}

phase('POST /add of as many');
batches('/add', 200, sub { "http://c$_[0].example/$_[0]" });
phase('erasing: POST /erase');
batches('/erase', 202, sub { $_[0] });
phase('erasing: records, files, workers');

my $end = time + 600;
my $left;

do {
    sleep .5;
    $left = grep { @{ $_->{left} } }
        @{ $t->get('/erase?limit=1000')->json->{erasures} };
} while $left && time < $end;

die "$left erasures are left" if $left;

phase('after');
sleep $alone;
kill TERM => @pids;
waitpid $_, 0 for @pids;
phase('end');


my @times;

for my $n (1 .. $clients) {
    open my $f, '<', "$t->{dir}/times.$n" or die $!;
    push @times, map { [ split ] } <$f>;
}

printf "%-34s %7s %9s %8s %8s %8s %8s %8s\n", '', 's', 'requests', 'median',
    '99 %', '99.9 %', '99.99 %', 'longest';

for my $i (0 .. $#phases - 1) {
    my ($from, $to) = ($phases[$i]{from}, $phases[$i + 1]{from});
    my @ms = sort { $a <=> $b }
        map { $_->[1] } grep { $_->[0] >= $from && $_->[0] < $to } @times;

    printf "%-34s %7.1f %9d %8.2f %8.2f %8.2f %8.2f %8.2f\n", $phases[$i]{name},
        $to - $from, scalar @ms,
        map { $ms[$#ms * $_] } .5, .99, .999, .9999, 1;
}

$t->stop;
