#!/usr/bin/perl

# The load of seven nodes under hash functions for URLs, on as many URLs as
# the source of the idea had (all of a list that has less), drawn from three
# lists, and on generated ones; see hash.c.
#
#     make bench-hash          URLS=N NODES=N for others than 246951 and 7

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../../t/lib";

use UrlStore::Corpora;

my $top = "$FindBin::Bin/../..";
my $urls = $ENV{URLS} || 246951;
my $nodes = $ENV{NODES} || 7;
my @names = qw(reddit_submissions eot2024_A alphagov_old_urls);

$| = 1;
announce($urls, @names);

for my $name (@names, 'generated') {
    my $command = $name eq 'generated' ? generator($urls)
        : corpus_command($name);
    my @lines = @{ drawn($command, $urls) };

    printf "%s, %d different canonical URLs drawn at random\n\n", $name,
        scalar @lines;

    open my $out, '|-', "$top/build/bench/hash -n $urls -m $nodes" or die $!;
    print $out @lines;
    close $out or die "bench/hash failed\n";
    print "\n";
}

print "The source: 7 nodes, 246951 URLs, max/mean 1.0085.\n";
