#!/usr/bin/perl

# One table: what the same URLs take here, in Redis and Valkey, and in the
# structures that Debian ships.
#
#     make bench                 [LIMIT=N] [SHUFFLE=SEED]
#                                [FILE=build/corpora/X.txt.xz]
#
# Without FILE, the URLs of reddit_submissions; if there is only a sample of
# that, generated ones too.
#
# URLs are canonical and all different, in the order of their corpus, or
# shuffled.  Times are nanoseconds a URL of one thread; for a server, of its CPU
# time, so that its client does not count.  It gets commands of 1,000 members,
# pipelined, over a Unix socket, and its own memory figure counts.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../../t/lib";

use File::Temp qw(tempdir);
use JSON::PP ();

use UrlStore::Corpora;
use UrlStore::Cpu;
use UrlStore::Peer;

my $top = "$FindBin::Bin/../..";
my $limit = $ENV{LIMIT} || 0;
my $seed = $ENV{SHUFFLE} || 0;
my $list = 'reddit_submissions';
my $dir = tempdir(CLEANUP => 1);
my @urls;

$| = 1;

if ($ENV{FILE}) {
    print "URLs: $ENV{FILE}\n\n";
    compare($ENV{FILE} =~ m|([^/]+)$|, unpacked($ENV{FILE}));

} else {
    my $more = corpus_sampled($list) ? $limit || 1_000_000 : 0;

    announce($more, $list);
    compare($list, corpus_command($list));
    compare('generated', generator($more)) if $more;
}

print about_peers(), "\n"
    . "back: id -> URL too.  grows: takes new URLs at any time.\n"
    . "B/URL: all memory in use for the data; servers: used_memory.\n"
    . "ns: one thread; servers: their CPU time.\n";


# a shell command that prints the lines of a file

sub unpacked
{
    my ($file) = @_;

    die "no file $file\n" if !-f $file;

    return ($file =~ /\.xz$/ ? 'xz -dc ' : $file =~ /\.gz$/ ? 'gzip -dc '
        : 'cat ') . quotemeta $file;
}


# one table, of the URLs that a command prints

sub compare
{
    my ($name, $command) = @_;
    my $head = $limit ? "| head -n $limit" : '';
    my %have;

    system("$command $head > $dir/lines") == 0 or die "$command failed\n";

    open my $in, '-|', "$top/build/urlstore normalize < $dir/lines" or die $!;

    @urls = ();

    while (my $url = <$in>) {
        chomp $url;
        push @urls, $url if $url !~ /^!/ && !$have{$url}++;
    }

    die "$name has no URL\n" if !@urls;

    shuffle(\@urls, $seed) if $seed;

    open my $out, '>:raw', "$dir/urls" or die $!;
    print $out "$_\n" for @urls;
    close $out or die $!;

    my $bytes = (-s "$dir/urls") / @urls - 1;

    printf "%d different canonical URLs of %.1f bytes, %s%s\n\n",
        scalar @urls, $bytes, $name, $seed ? ", shuffled (seed $seed)" : '';
    printf "%-38s %5s %5s %5s %8s %8s %7s %7s\n", '', 'exact', 'back',
        'grows', 'B/URL', 'add ns', 'hit ns', 'miss ns';

    row('plain text', 'yes', '-', '-', $bytes + 1);
    urlstore();

    for my $peer (peers()) {
        set($peer);
        hashes($peer);
        buckets($peer);
    }

    structures();
    print "\n";
}


sub row
{
    my ($name, @cells) = @_;

    printf "%-38s %5s %5s %5s %8s %8s %7s %7s\n", $name, @cells[0 .. 2],
        map { defined && /\d/ ? sprintf($_ < 1000 ? '%.4g' : '%.0f', $_) : '-' }
        @cells[3 .. 6];
}


# as build/bench/engine --shuffle has it: Fisher-Yates by SplitMix64

sub shuffle
{
    my ($list, $state) = @_;

    no warnings 'portable';

    for (my $i = @$list; $i > 1; $i--) {
        { use integer; $state += 0x9e3779b97f4a7c15; }
        my $z = $state & ~0;

        for ([ 30, 0xbf58476d1ce4e5b9 ], [ 27, 0x94d049bb133111eb ]) {
            $z ^= $z >> $_->[0];
            { use integer; $z *= $_->[1]; }
            $z &= ~0;
        }

        my $k = ($z ^ $z >> 31) % $i;
        @$list[$i - 1, $k] = @$list[$k, $i - 1];
    }
}


sub urlstore
{
    my $out = `$top/build/bench/engine --json $dir/urls`;
    my $r = eval { JSON::PP->new->decode($out) } or die "urlstore: $out";

    row('urlstore', 'yes', 'yes', 'yes', @$r{qw(bytes_per_url insert_ns
        hit_ns miss_ns)});
    row('urlstore, 1,000 at once', 'yes', 'yes', 'yes', undef, undef,
        @$r{qw(batch_hit_ns batch_miss_ns)});
}


# a set: known or not, no ids

sub set
{
    my ($peer) = @_;

    measure($peer, 'SADD', 'no',
        sub {
            my ($server, $from, $urls) = @_;
            $server->pipeline(8, 'SADD', 'u', @$urls);
        },
        sub {
            my ($server, $urls) = @_;
            $server->pipeline(8, 'SMISMEMBER', 'u', @$urls);
        });
}


# two hashes: URL -> id and id -> URL

sub hashes
{
    my ($peer) = @_;

    measure($peer, 'HSET, two hashes', 'yes',
        sub {
            my ($server, $from, $urls) = @_;
            my $id = $from;

            $server->pipeline(8, 'HSET', 'u', map { ($_, $id++) } @$urls);
            $id = $from;
            $server->pipeline(8, 'HSET', 'i', map { ($id++, $_) } @$urls);
        });
}


# the same in many small hashes, which a server keeps as lists: the trick
# that users of Redis know for saving memory

sub buckets
{
    my ($peer) = @_;
    my $buckets = int(@urls / 64) + 1;

    measure($peer, 'HSET, small hashes', 'yes',
        sub {
            my ($server, $from, $urls) = @_;
            my $id = $from;

            for my $url (@$urls) {
                my $b = hash($url) % $buckets;

                $server->pipeline(2000, 'HSET', "u$b", $url, $id);
                $server->pipeline(2000, 'HSET', 'i' . int($id / 64), $id, $url);
                $id++;
            }
        }, undef, '--hash-max-listpack-entries', 512,
        '--hash-max-listpack-value', 8192);
}


# a hash that spreads, in core Perl

sub hash
{
    my ($s) = @_;

    my $h = 5381;

    $h = ($h * 33 + $_) & 0xffffffff for unpack 'V*', "$s\0\0\0";
    return $h;
}


sub measure
{
    my ($peer, $what, $back, $add, $look, @options) = @_;

    my $server = $peer->start($dir, @options);
    my ($empty) = $server->memory;
    my $start = cpu_of($server->pid);

    portions(sub { $add->($server, @_) });
    $server->drain;

    my $insert = (cpu_of($server->pid) - $start) / @urls * 1e9;
    my ($used) = $server->memory;
    my ($hit, $miss);

    if ($look) {
        $start = cpu_of($server->pid);
        portions(sub { $look->($server, $_[1]) });
        $server->drain;
        $hit = (cpu_of($server->pid) - $start) / @urls * 1e9;

        $start = cpu_of($server->pid);
        portions(sub { $look->($server, [ map { "$_~\x7f" } @{ $_[1] } ]) });
        $server->drain;
        $miss = (cpu_of($server->pid) - $start) / @urls * 1e9;
    }

    row($peer->name . " $what", 'yes', $back, 'yes',
        ($used - $empty) / @urls, $insert, $hit, $miss);
    $server->stop;
}


sub portions
{
    my ($code) = @_;

    for (my $from = 0; $from < @urls; $from += 1000) {
        my $to = $from + 999 < $#urls ? $from + 999 : $#urls;

        $code->($from, [ @urls[$from .. $to] ]);
    }
}


sub structures
{
    for my $program ('structures', 'paper -s') {
        my ($file) = $program =~ /^(\w+)/;

        next if !-x "$top/build/bench/$file";

        open my $fh, '-|', "$top/build/bench/$program < $dir/urls" or die $!;

        while (my $line = <$fh>) {
            chomp $line;
            my ($name, @cells) = split /\t/, $line;
            row($name, @cells);
        }

        close $fh or die "$program failed";
    }
}
