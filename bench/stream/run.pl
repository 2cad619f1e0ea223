#!/usr/bin/perl

# Links of pages, as a crawler sends them: mostly seen before, beside Redis and
# Valkey.
#
#     make bench-stream          [LINES=200000] [ROUNDS=5] [LISTS='A B']
#
# The links of a list are sent page by page, in its order and with its
# repetitions, in batches of 100 and of 1,000 lines to a private nginx with one
# worker, each batch after the answer to the one before.  The same canonical
# lines go to a private one of each as SADD, and their SHA-1 in hexadecimal,
# which is what scrapy-redis keeps.
#
#     first       into an empty store, learning included
#     again       the whole list once more: POST /add?brief=1
#     full        the same with canonical URLs in the answers
#     older       the same as again, with older=30d: what was claimed longer ago
#                 would be due
#     set         the same as again, with set=: all of them are in it
#     relative    the same as again; links to the host of the batch's first URL
#                 are sent without scheme and host, and that URL as base=
#
# Figures are microseconds a link, medians of ROUNDS passes (of three for the
# first one), all cases in turn: of CPU time of the server, and between the
# first request and the last answer (wall).  Redis and Valkey normalize nothing
# and answer how many were new; this server answers an id for each.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../../t/lib";

use Digest::SHA qw(sha1_hex);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Time::HiRes qw(sleep time);

use UrlStore::Corpora;
use UrlStore::Cpu;
use UrlStore::Peer;
use UrlStore::Test;

use constant FIRSTS => 3;
use constant BATCHES => (100, 1000);

my $lines = $ENV{LINES} // 200_000;      # 0: all
my $rounds = $ENV{ROUNDS} || 5;
my @real = split ' ', $ENV{LISTS} || 'html_mdn_archived_pages'
    . ' html_news_blogs_pages html_forms_forums_shops_pages'
    . ' trackawesomelist_md';
my $generated = $lines || 200_000;

$| = 1;
$ENV{PATH} .= ':/usr/sbin';
announce($generated, @real);

my @lists = (@real, 'generated');
my $dir = tempdir(CLEANUP => 1);
my $t = UrlStore::Test->new(workers => 1, log => 'warn', judge => 0)
    ->run(config());
my @servers = map { $_->start($dir) } peers();
my $nginx;
my $socket;

wait_until(30, sub { ($nginx) = $t->worker_pids; $nginx })
    or die "nginx has no worker\n";

print about_peers(), "\n\n";

printf "%-30s %6s %8s %8s %6s\n", '', 'batch', 'links', 'URLs', 'new';

my (@cpu, @wall);

for my $n (0 .. $#lists) {
    my $links = links($lists[$n]);

    for my $batch (BATCHES) {
        measure($lists[$n], $links, "z${n}b$batch", $batch);
    }
}

my @heads = ('first', 'again', 'full', 'older', 'set', 'relative',
    'SADD first', 'again', 'SHA-1 first', 'again');

for my $name (@servers ? map { $_->name } @servers : '') {
    print "\nserver CPU, us a link",
        $name && "; in brackets: times SADD of the lines, $name", "\n\n";
    table(\@heads, $name, @cpu);

    print "\nwall time, us a link", $name && ", $name", "\n\n";
    table(\@heads, $name, @wall);
}

$_->stop for @servers;
$t->stop;


# --- what is sent -------------------------------------------------------

sub config
{
    my ($zones, $locations) = ('', '');

    for my $n (0 .. $#lists) {
        for my $batch (BATCHES) {
            for my $zone (map { "z${n}b${batch}_$_" } 1 .. FIRSTS) {
                $zones .= "urlstore_zone $zone 256m revisit=1h"
                    . " sets_create=auto;\n";
                $locations .= "location /$zone/ { urlstore_api $zone; }\n";
            }
        }
    }

    return <<"CONF";
$zones
keepalive_requests 1000000000;
client_max_body_size 8m;
client_body_buffer_size 1m;
client_header_buffer_size 16k;
server {
    listen 127.0.0.1:%%PORT%%;
    $locations
}
CONF
}


# the links of a list that a store would take, and their canonical URLs

sub links
{
    my ($name) = @_;
    my $cat = $name eq 'generated'
        ? "$UrlStore::Test::TOP/build/generate -n $generated -d 0.9"
        : corpus_command($name);
    my $head = $lines ? "| head -n $lines" : '';
    my (@sent, @canonical);

    open my $raw, '-|:raw', "$cat 2>/dev/null $head" or die $!;
    open my $out, '-|:raw', "$cat 2>/dev/null $head | "
        . "$UrlStore::Test::TOP/build/urlstore normalize" or die $!;

    while (defined(my $line = <$raw>)) {
        chomp $line;
        next if $line eq '';

        my $url = <$out> // die "urlstore normalize ended early\n";

        chomp $url;
        next if $url =~ /^!/;

        push @sent, $line;
        push @canonical, $url;
    }

    die "no links in $name\n" if !@sent;

    return { sent => \@sent, canonical => \@canonical };
}


# the requests of a pass

sub requests
{
    my ($links, $batch, $path) = @_;

    return [ map { request($path, $_) } slices($links->{sent}, $batch) ];
}


sub relative
{
    my ($links, $batch, $path) = @_;
    my @requests;

    for my $urls (slices($links->{canonical}, $batch)) {
        my ($site) = $urls->[0] =~ m{^(https?://[^/?]+)};

        push @requests, request($path . '&base=' . uri_escape($urls->[0]),
            [ map { m{^\Q$site\E(/(?!/).*)$} ? $1 : $_ } @$urls ]);
    }

    return \@requests;
}


sub request
{
    my ($path, $urls) = @_;
    my $body = join("\n", @$urls) . "\n";

    return "POST $path HTTP/1.1\r\nHost: localhost\r\n"
        . "Content-Type: text/plain\r\nContent-Length: " . length($body)
        . "\r\n\r\n$body";
}


sub slices
{
    my ($list, $n) = @_;
    my @slices;

    for (my $i = 0; $i < @$list; $i += $n) {
        my $end = $i + $n - 1 < $#$list ? $i + $n - 1 : $#$list;

        push @slices, [ @$list[$i .. $end] ];
    }

    return @slices;
}


# --- what is measured ---------------------------------------------------

sub measure
{
    my ($name, $links, $zone, $batch) = @_;
    my $n = @{ $links->{sent} };
    my @sha = map { sha1_hex($_) } @{ $links->{canonical} };
    my %set = (lines => commands($links->{canonical}, $batch, 'lines'),
        sha => commands(\@sha, $batch, 'sha'));
    my (%cpu, %wall, $first);

    my $keep = sub {
        my ($case, $cpu, $wall) = @_;

        push @{ $cpu{$case} }, $cpu / $n * 1e6;
        push @{ $wall{$case} }, $wall / $n * 1e6;
    };

    for my $i (1 .. FIRSTS) {
        my $path = "/${zone}_$i/add?brief=1";

        $keep->('first', run(requests($links, $batch, $path), 1));

        for my $server (@servers) {
            for my $kind (sort keys %set) {
                $server->command('DEL', $kind);
                $keep->($server->name . " $kind first",
                    sadd($server, $set{$kind}));
            }
        }
    }

    my %ours = (
        again => requests($links, $batch, "/${zone}_1/add?brief=1"),
        full => requests($links, $batch, "/${zone}_1/add?"),
        older => requests($links, $batch,
            "/${zone}_1/add?brief=1&older=30d"),
        set => requests($links, $batch, "/${zone}_1/add?brief=1&set=crawl"),
        relative => relative($links, $batch, "/${zone}_1/add?brief=1"),
    );

    run($ours{set}, 0);

    for (1 .. $rounds) {
        $keep->($_, run($ours{$_}, 0)) for sort keys %ours;

        for my $server (@servers) {
            $keep->($server->name . " $_", sadd($server, $set{$_}))
                for sort keys %set;
        }
    }

    my $urls = $t->get("/${zone}_1/stats")->json->{urls};

    printf "%-30s %6d %8d %8d %5.1f%%\n", $name, $batch, $n, $urls,
        100 * $urls / $n;

    push @cpu, [ $name, $batch, map { ($_ => median($cpu{$_})) } keys %cpu ];
    push @wall, [ $name, $batch,
        map { ($_ => median($wall{$_})) } keys %wall ];
}


sub commands
{
    my ($members, $batch, $key) = @_;

    return [ map { UrlStore::Peer::wire('SADD', $key, @$_) }
        slices($members, $batch) ];
}


# Sends requests, each after the answer to the one before.  Returns seconds of
# CPU and of wall time; with learning: the CPU time of its threads, too, until
# they have ended, which the system counts in hundredths of a second.

sub run
{
    my ($requests, $learning) = @_;
    my @before = (main_thread($nginx), cpu_of($nginx));
    my $start = time;

    post($_) for @$requests;

    my $wall = time - $start;
    my $main = main_thread($nginx) - $before[0];

    return ($main, $wall) if !$learning;

    my $cpu = cpu_of($nginx);

    for (my $idle = 0; $idle < 3; ) {
        sleep 0.1;

        my $now = cpu_of($nginx);

        $idle = $now - $cpu < 0.02 ? $idle + 1 : 0;
        $cpu = $now;
    }

    my $threads = $cpu - $before[1] - $main;

    return ($main + ($threads > 0.03 ? $threads : 0), $wall);
}


sub sadd
{
    my ($server, $commands) = @_;
    my $before = main_thread($server->pid);
    my $start = time;

    for my $command (@$commands) {
        $server->send_wire($command);
        $server->reply;
    }

    return (main_thread($server->pid) - $before, time - $start);
}


# CPU seconds of the thread that serves, in ns of the scheduler

sub main_thread
{
    my ($pid) = @_;

    open my $fh, '<', "/proc/$pid/schedstat" or return cpu_of($pid);

    return (split ' ', <$fh>)[0] / 1e9;
}


sub post
{
    my ($request) = @_;

    $socket //= IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $t->port) // die "connect: $!";

    for (my $at = 0; $at < length $request; ) {
        $at += syswrite($socket, $request, length($request) - $at, $at)
            // die "nginx: $!";
    }

    my $answer = '';

    for ( ;; ) {
        sysread($socket, $answer, 1 << 20, length $answer)
            or die 'nginx closed the connection';

        my $end = index $answer, "\r\n\r\n";
        next if $end < 0;

        my ($length) = substr($answer, 0, $end) =~ /^Content-Length: (\d+)/mi
            or die $answer;

        next if length($answer) < $end + 4 + $length;
        die $answer if $answer !~ /^HTTP\/1.1 200/;
        return;
    }
}


sub median
{
    my ($all) = @_;

    my @sorted = sort { $a <=> $b } @$all;

    return $sorted[$#sorted / 2];
}


# --- what is printed ----------------------------------------------------

# rows: list, batch, medians by case; the columns of one server, or of none

sub table
{
    my ($heads, $server, @rows) = @_;
    my @theirs = $server ? map { "$server $_" } 'lines first', 'lines',
        'sha first', 'sha' : ();

    printf "%-30s %6s" . ' %13s' x 6 . ' %11s' x @theirs . "\n", '', 'batch',
        @$heads[0 .. 5 + @theirs];

    for my $row (@rows) {
        my ($list, $batch, %us) = @$row;

        printf "%-30s %6d" . ' %13s' x 6 . ' %11.3f' x @theirs . "\n", $list,
            $batch, (map { ratio($us{$heads->[$_]},
                @theirs && $us{$theirs[$_ ? 1 : 0]}) } 0 .. 5), @us{@theirs};
    }
}


sub ratio
{
    my ($us, $redis) = @_;

    return sprintf('%.3f', $us)
        . ($redis ? sprintf(' (%.2f)', $us / $redis) : '');
}
