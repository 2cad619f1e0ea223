#!/usr/bin/perl

# Clusters of 1 to 1,024 shards, simulated by the module's own map and slot
# code (simulate.c): the balance of real URLs and of Zipf sites, what a history
# of growth costs, bytes per URL of divided stores, 100 billion URLs on paper.
#
#     make simulate            URLS=N for another number of URLs than 246951

use strict;
use warnings;

use File::Temp qw(tempdir);
use FindBin;
use JSON::PP;
use lib "$FindBin::Bin/../../t/lib";

use UrlStore::Corpora;

my $top = "$FindBin::Bin/../..";
my $simulate = "$top/build/bench/simulate";
my $urls = $ENV{URLS} || 246951;
my @names = qw(reddit_submissions eot2024_A alphagov_old_urls);
my $dir = tempdir(CLEANUP => 1);

$| = 1;
announce(0, @names);


sub table
{
    my ($title, @columns) = @_;

    print "\n$title\n\n| ", join(' | ', @columns), " |\n|---|",
        '--:|' x (@columns - 1), "\n";
}


sub rows
{
    system("$simulate $_[0]") == 0 or die "simulate $_[0] failed\n";
}


# --- balance

my @sizes = map { "$_ shards" } 2, 4, 7, 16, 64, 256, 1024;

for my $name (@names) {
    my $lines = drawn(corpus_command($name), $urls);

    table("$name, " . @$lines . ' different canonical URLs: the fullest shard '
        . 'against the mean', 'key', @sizes);

    open my $out, '|-', "$simulate balance" or die $!;
    print $out @$lines;
    close $out or die "simulate balance failed\n";
}

table('a million sites, whose URLs are as 1 / rank^s: the same by site', 's',
    @sizes);
rows('zipf');


# --- growth: questions, subrequests, memory

table('growth', 'history', 'shards', 'fullest / mean', 'questions for a link',
    'most former owners', 'subrequests for 1,000 links', 'for 10,000',
    'map in memory, KB', 'its text, KB');
rows('growth');


# --- bytes per URL: one store, and four

my $name = $names[0];

system(corpus_command($name) . " | $top/build/urlstore dedup -q --normalize "
    . "crawler >$dir/all") >> 8 <= 1 or die "dedup failed\n";

my $one = bytes("$dir/all");

table("$name, $one->[0] different canonical URLs: memory of the stores",
    'shards', 'B/URL', 'against one');
printf "| 1 | %.2f | |\n", $one->[1] / $one->[0];

for my $key (qw(url site)) {
    rows("split -m 4 -k $key -o $dir/part <$dir/all");

    my ($n, $bytes) = (0, 0);

    for my $part (map { bytes("$dir/part$_") } 0 .. 3) {
        $n += $part->[0];
        $bytes += $part->[1];
    }

    die "URLs were lost\n" if $n != $one->[0];
    printf "| 4, by %s | %.2f | %.3f |\n", $key, $bytes / $n,
        $bytes / $n / ($one->[1] / $one->[0]);
}

# URLs and bytes of memory of a store

sub bytes
{
    my $r = decode_json(scalar `$top/build/bench/engine --json $_[0]`);

    die "$_[0]: wrong answers\n" if $r->{errors};

    return [ @$r{qw(urls zone_bytes)} ];
}


# --- on paper

my $each = sprintf '%.1f', $one->[1] / $one->[0];
my $length = sprintf '%.0f', (-s "$dir/all") / $one->[0] - 1;

table("100 billion URLs of $length bytes, $each B each in memory; shards that "
    . "were doubled from one", 'shards', 'million URLs each', 'GB each',
    'times that a link is sent', 'MB/s of router and shards for 1 M links/s');
rows("paper -b $each -l $length");
