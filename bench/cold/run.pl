#!/usr/bin/perl

# A store that is larger than memory, with its log in a file that is mapped.
# Nothing of it ships: docs/decisions/cold.md says why.
#
#     make bench-cold            [URLS=10000000] [SHARE='33 50'] [BATCHES=400]
#                                [HOWS='fault group'] [DIR=build]
#
#   SHARE: percents of the store that are in memory at most; the index and the
#   lines that locate records always are.  HOWS: `kernel` is another one, which
#   reads so much that a batch can take minutes if SHARE is small; with `memory`
#   alone nothing is limited, and root is not needed.
#
# The store has URLS generated URLs, and among them, at even distances, the
# pages of four lists: 100 links each.  In DIR the file takes 20 bytes for each
# URL.  Streams of batches of 100 links:
#
#     known, a page       as generated one after the other: links of a few sites
#     known, real pages   those of the lists, in random order
#     known, random       each link by itself
#     new, looked up      generated ones that are not in the store; most are of
#                         sites that are
#     new, added          the same
#
# bench/cold/cold.c says what the ways are.  The memory of the process is
# limited by a cgroup, which only root can make; its time is that of the store
# alone, without reading and normalizing links.  The last two columns are of the
# time that the store's lock is held: faults a link, and the longest time.  The
# first hundred batches fill the memory that there is and do not count.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../../t/lib";

use File::Temp qw(tempdir);
use List::Util qw(shuffle);
use POSIX ();

use UrlStore::Corpora;

use constant PAGE => 100;
use constant WARM => 100;

my $urls = $ENV{URLS} || 10_000_000;
my @shares = split ' ', $ENV{SHARE} || '33 50';
my $batches = ($ENV{BATCHES} || 400) + WARM;
my @hows = grep { $_ ne 'memory' } split ' ', $ENV{HOWS} || 'fault group';
my $build = "$FindBin::Bin/../../build";
my $dir = tempdir(DIR => $ENV{DIR} || $build, CLEANUP => 1);
my $cold = "$build/bench/cold";
my @lists = qw(html_mdn_archived_pages html_news_blogs_pages
    html_forms_forums_shops_pages trackawesomelist_md);
my @streams = (
    [ 'known, a page', 'page' ],
    [ 'known, real pages', 'real' ],
    [ 'known, random', 'random' ],
    [ 'new, looked up', 'look' ],
    [ 'new, added', 'new' ],
);

$| = 1;
srand 1;
announce($urls, @lists);
die 'URLS: at least ' . 10 * PAGE * $batches . "\n"
    if $urls < 10 * PAGE * $batches;

my $group = @hows ? group() : '-';

make();
system($cold, 'disk', "$dir/store") == 0 or die if @hows;

printf "\n" . ("%-18s %-7s%4s %7s" . ' %8s' x 8 . "\n") x 2, ('') x 4,
    'faults', 'pages', 'CPU us', 'batch:', '', '', 'locked:', '', '', 'how',
    '%', 'links', ('a link') x 3, 'p50 ms', 'p99 ms', 'most ms', 'faults',
    'most ms';

for my $stream (@streams) {
    my ($name, $file) = @$stream;

    for my $case ([ 'memory', 100 ],
        map { my $share = $_; map { [ $_, $share ] } @hows } @shares)
    {
        system($cold, @$case, $group, "$dir/store", "$dir/$file", $name);
        next if $? == 0;
        die "$name, @$case: failed\n" if $? != POSIX::SIGALRM;
        print "$name, @$case: a batch takes too long\n";
    }
}

load();


# the store, and the streams

sub make
{
    my @real = real_pages();
    my $each = int($urls / (@real + 1));
    my $every = int($urls / PAGE / ($batches + 1));
    my $chance = PAGE * $batches / $urls * 1.2;
    my @random;

    open my $store, '|-', $cold, 'make', "$dir/store", $urls + PAGE * @real
        or die $!;
    open my $in, '-|', generator($urls + PAGE * $batches) or die $!;
    open my $page, '>', "$dir/page" or die $!;

    for (my $n = 0; $n < $urls; $n++) {
        my $url = <$in>;

        print $store @{ $real[$n / $each - 1] }
            if $n % $each == 0 && $n && $n / $each <= @real;
        print $store $url;

        print $page $url, ($n + 1) % PAGE ? '' : "\n"
            if int($n / PAGE) % $every == 0;
        push @random, $url if rand() < $chance;
    }

    close $store or die "cold make failed\n";
    close $page or die $!;

    batches('random', '', shuffle @random);
    splice @real, $batches if @real > $batches;
    batches('real', '', map { @$_ } shuffle @real);

    my @new = <$in>;

    close $in or die "generate failed\n";
    batches('look', "?\n", @new);
    batches('new', "+\n", @new);
}


sub real_pages
{
    my @links = map { @{ corpus($_, corpus_sampled($_) ? () : 100_000) } }
        @lists;
    my @pages;

    push @pages, [ map { "$_\n" } splice @links, 0, PAGE ] while @links;

    return shuffle @pages;
}


sub batches
{
    my ($name, $head, @links) = @_;

    open my $out, '>', "$dir/$name" or die $!;

    while (@links >= PAGE) {
        print $out $head, splice(@links, 0, PAGE), "\n";
    }

    close $out or die $!;
}


# a cgroup of this process's, or of the root: version 1 or 2

sub group
{
    open my $self, '<', '/proc/self/cgroup' or die "/proc/self/cgroup: $!";
    my %path = map { /^\d+:([^:]*):(.*)/ ? ($1 => $2) : () } <$self>;
    my $parent = defined $path{memory}
        ? "/sys/fs/cgroup/memory$path{memory}" : '/sys/fs/cgroup';
    my $new = "$parent/urlstore-cold-$$";

    mkdir $new or die "$new: $!; root is needed, and cgroups\n";

    if (!grep { -e "$new/$_" } qw(memory.max memory.limit_in_bytes)) {
        rmdir $new;
        die "$parent: its groups have no limit of memory\n";
    }

    return $new;
}


sub load
{
    open my $fh, '<', '/proc/loadavg' or return;
    print "\nthe load of this machine: ", join(' ', (split ' ', <$fh>)[0 .. 2]),
        "\n";
}


END {
    rmdir $group if $group;
}
