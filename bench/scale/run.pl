#!/usr/bin/perl

# Memory and time against the number of URLs, on generated ones; first, how
# much these are like the real ones.
#
#     make bench-scale         SCALE=N: up to N URLs (100000000), N of them if
#                              that is less than a million
#                              CHECK=0: without the comparison
#
# 100 million need about 13 GB of memory, most of it for the benchmark's own
# copy of the URLs, and half an hour; it ends before a line for which there is
# no memory.  The figure goes to build/scale/scale.svg and .png after each
# line, what it shows to build/scale/data; docs/images has that of 100 million.

use strict;
use warnings;

use File::Temp qw(tempdir);
use FindBin;
use JSON::PP ();

use lib "$FindBin::Bin/../../t/lib";
use UrlStore::Corpora;

my $top = "$FindBin::Bin/../..";
my $most = $ENV{SCALE} || 100_000_000;
my $part = $most < 400_000 ? $most : 400_000;
my $dir = tempdir(CLEANUP => 1);
my $figures = "$top/build/scale";
my $data = "$figures/data";
my @names = qw(reddit_submissions html_news_blogs_pages trackawesomelist_md
    eot2024_A alphagov_old_urls);

$| = 1;
mkdir $figures;
announce("up to $most", ($ENV{CHECK} // 1) ? @names : ());

check() if $ENV{CHECK} // 1;
scale();


# distinct lines of the first 400,000 or SCALE: what a compressor makes of them

sub check
{
    printf "%-32s %8s %6s %6s %6s %6s %8s %8s %8s\n", "first $part lines",
        'distinct', 'bytes', 'URLs', '? in', '% in', 'xz', 'xz', 'store';
    printf "%-32s %8s %6s %6s %6s %6s %8s %8s %8s\n", '', '', '', '/host',
        '%', '%', 'B/URL', 'sorted', 'B/URL';

    like_real($_, corpus_command($_)) for @names;
    like_real("generated, seed $_", generator($part, $_)) for 1 .. 3;

    print "\n";
}


sub like_real
{
    my ($name, $command) = @_;
    my ($n, $bytes, $query, $percent, %host) = (0, 0, 0, 0);

    system("$command | head -n $part | $top/build/urlstore dedup -q"
        . " >$dir/part") == 0 or die;

    open my $f, '<', "$dir/part" or die $!;

    while (my $url = <$f>) {
        $n++;
        $bytes += length($url) - 1;
        $query += $url =~ /\?/;
        $percent += $url =~ /%/;
        $host{$1}++ if $url =~ m|://([^/?]*)|;
    }

    printf "%-32s %8d %6.1f %6.1f %6.1f %6.1f %8.2f %8.2f %8.2f\n", $name, $n,
        $bytes / $n, $n / keys %host, 100 * $query / $n, 100 * $percent / $n,
        `xz -6c $dir/part | wc -c` / $n,
        `LC_ALL=C sort $dir/part | xz -6c | wc -c` / $n,
        bench("$dir/part")->{bytes_per_url};
}


sub bench
{
    my ($file) = @_;
    my $out = `bash -c '$top/build/bench/engine --json $file'`;
    my $r = eval { JSON::PP->new->decode($out) } or die "bench: $out";

    die "wrong answers: $out" if $r->{errors};

    return $r;
}


sub scale
{
    my @keys = qw(bytes_per_url insert_ns hit_ns miss_ns get_ns batch_hit_ns
        batch_miss_ns train_ns apply_ns longest_pause_us);

    printf "%10s %8s %8s %8s %8s %8s %9s %10s %8s %8s %8s\n", 'URLs', 'B/URL',
        'insert', 'hit', 'miss', 'get', 'batch hit', 'batch miss', 'train',
        'replay', 'pause us';

    unlink $data;

    my @sizes = grep { $_ <= $most } map { ($_ * 1e6, $_ * 3e6) } 1, 10, 100;

    for my $n (@sizes ? @sizes : $most) {
        my $free = available();

        if ($n * 130 > $free) {
            printf "%10d URLs need %.1f GB of memory, %.1f are free\n", $n,
                $n * 130 / 1e9, $free / 1e9;
            last;
        }

        my $r = bench('- < <(' . generator($n) . ')');

        printf "%10d %8.2f %8.0f %8.0f %8.0f %8.0f %9.0f %10.0f %8.0f %8.0f"
            . " %8.0f\n", $r->{urls}, @$r{@keys};

        open my $f, '>>', $data or die "$data: $!\n";
        print $f join(' ', $r->{urls}, @$r{@keys}), "\n";
        close $f or die "$data: $!\n";

        figure($_) for qw(svg png);
    }
}


# bytes of memory that a process can get

sub available
{
    open my $f, '<', '/proc/meminfo' or die "/proc/meminfo: $!\n";
    my ($kb) = map { /^MemAvailable:\s+(\d+)/ } <$f>;

    return $kb * 1024;
}


sub figure
{
    my ($format) = @_;
    my $terminal = $format eq 'svg'
        ? "svg size 900,400 font 'sans,13' background rgb 'white'"
        : "pngcairo size 1800,800 font 'sans,22'";

    open my $p, '|-', 'gnuplot' or die "gnuplot: $!";
    print $p <<"END";
set terminal $terminal
set output '$figures/scale.$format'
set multiplot layout 1,2
set logscale x
set grid ytics lc rgb '#dddddd'
set format x '%.0s %c'
set xlabel 'URLs'
set yrange [0:*]
set title 'bytes per URL, everything counted'
plot '$data' using 1:2 with linespoints pt 7 lw 2 lc rgb '#2166ac' notitle
set title 'ns per operation'
set key top left
plot '$data' using 1:3 with linespoints pt 7 lw 2 lc rgb '#b2182b' \\
         title 'insert', \\
     '' using 1:4 with linespoints pt 5 lw 2 lc rgb '#2166ac' title 'hit', \\
     '' using 1:6 with linespoints pt 9 lw 2 lc rgb '#4daf4a' \\
         title 'id -> URL', \\
     '' using 1:5 with linespoints pt 4 lw 2 lc rgb '#999999' title 'miss'
END

    close $p or die "gnuplot failed\n";
}
