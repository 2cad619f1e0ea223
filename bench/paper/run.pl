#!/usr/bin/perl

# The founding paper's table and figure, for its structure and for the store,
# on every corpus; see bench/paper/paper.c for what is measured.
#
#     make bench-paper         LIMIT=N: at most N URLs of each (400000)
#                              ONLY=NAME,NAME: these corpora
#
# The figure goes to build/paper/paper.svg and .png; docs/images has that of
# the whole lists.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../../t/lib";

use UrlStore::Corpora;

my $top = "$FindBin::Bin/../..";
my $limit = $ENV{LIMIT} || 400000;
my $dir = "$top/build/paper";                   # the curves, the figure
my %what = (avl => 'AVL + delta', store => 'urlstore');
my @names = corpus_names();

if ($ENV{ONLY}) {
    my %only = map { $_ => 1 } split /,/, $ENV{ONLY};
    @names = grep { $only{$_} } @names;
}

$| = 1;
mkdir $dir;
announce(0, @names);

printf "at most %d URLs of each corpus, in file order; times in us\n\n", $limit;
printf "%-30s %-12s %8s | %6s %7s %6s | %6s %7s %9s | %6s %7s %9s\n",
    'corpus, URLs x bytes', '', '', 'B/URL', 'without', 'tails',
    'store', 'mean', 'max', 'get', 'mean', 'max';
printf "%-30s %-12s %8s | %6s %7s %6s | %6s %7s %9s | %6s %7s %9s\n",
    '', '', 'records', '', 'search', '', 'min', '', '', 'min', '', '';

for my $name (@names) {
    my $lines = corpus_command($name);
    my @rows = `$lines \\
        | $top/build/urlstore dedup -q --normalize crawler \\
        | $top/build/bench/paper -n $limit -c $dir/$name $name \\
          2>$dir/messages`;

    die "$name failed\n" if $?  || @rows != 2;

    for (@rows) {
        chomp;
        my ($n, $which, $urls, $raw, $with, $without, $tails, $hops, @ns)
            = split /\t/;

        printf "%-30s %-12s %8s | %6.2f %7.2f %6.2f"
            . " | %6.2f %7.2f %9.0f | %6.2f %7.2f %9.0f\n",
            $which eq 'avl' ? $n : "  $urls x $raw", $what{$which},
            $hops > 0 ? $hops : '-', $with, $without, $tails,
            map { $_ / 1000 } @ns;
    }
}

print "\nwithout search: what id -> URL alone needs; the paper: 28, 20 of 55"
    . " bytes, store 92 us, get 6 us\n";

figure($_) for grep { -e "$dir/reddit_submissions" && -e "$dir/eot2024_A" }
    qw(svg png);


sub figure
{
    my ($format) = @_;
    my $terminal = $format eq 'svg'
        ? "svg size 900,420 font 'sans,13' background rgb 'white'"
        : "pngcairo size 1800,840 font 'sans,22'";

    open my $p, '|-', 'gnuplot' or die "gnuplot: $!";
    print $p <<"END";
set terminal $terminal
set output '$dir/paper.$format'
set multiplot layout 1,2
set logscale y
set grid ytics lc rgb '#dddddd'
set xtics $limit / 4.0
set key top left
set format x '%.0s%c'
set format y '%g'
set xlabel 'URLs stored'
set ylabel 'microseconds, mean'
set yrange [0.3:300]
END

    for my $c ([ 'reddit_submissions', 'reddit, order of arrival' ],
        [ 'eot2024_A', 'eot2024, nearly sorted' ])
    {
        print $p <<"END";
set title '$c->[1]'
plot '$dir/$c->[0]' using 1:(\$2/1000) with linespoints pt 6 lw 2 \\
         lc rgb '#b2182b' title 'AVL + delta: store', \\
     '' using 1:(\$3/1000) with linespoints pt 4 lw 2 lc rgb '#ef8a62' \\
         title 'AVL + delta: retrieve', \\
     '' using 1:(\$4/1000) with linespoints pt 7 lw 2 lc rgb '#2166ac' \\
         title 'urlstore: store', \\
     '' using 1:(\$5/1000) with linespoints pt 5 lw 2 lc rgb '#67a9cf' \\
         title 'urlstore: retrieve'
END
    }

    close $p or die "gnuplot failed\n";
}
