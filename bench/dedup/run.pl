#!/usr/bin/perl

# urlstore dedup beside what people use: sort -u, awk and a Perl hash.  Each
# reads the lines of a corpus from a file and writes the different ones to
# /dev/null; their order is checked beforehand, on a smaller part.
#
#     make bench-dedup         N=LINES: generated URLs for the filter (50000000)

use strict;
use warnings;

use File::Temp qw(tempdir);
use FindBin;
use Time::HiRes qw(sleep time);

use lib "$FindBin::Bin/../../t/lib";
use UrlStore::Corpora;

my $top = "$FindBin::Bin/../..";
my $dedup = "$top/build/urlstore dedup -q";
my $dir = tempdir(CLEANUP => 1);
my $many = $ENV{N} // 50_000_000;

my @ways = (
    [ 'urlstore dedup',                "$dedup FILE" ],
    [ 'urlstore dedup --filter N,.001', "$dedup --filter LINES,0.001 FILE" ],
    [ 'urlstore dedup --normalize',    "$dedup --normalize crawler FILE" ],
    [ 'LC_ALL=C sort -u',              'LC_ALL=C sort -u FILE' ],
    [ "awk '!s[\$0]++' (mawk)",        "mawk '!s[\$0]++' FILE" ],
    [ 'Perl hash',                     "perl -ne 'print unless \$s{\$_}++'"
                                       . ' FILE' ],
);

my @names = qw(reddit_submissions eot2024_A trackawesomelist_md
    html_mdn_archived_pages);

$| = 1;
announce($many, @names);


# runs a command line: seconds, CPU seconds, MB at its peak

sub measure
{
    my ($command) = @_;

    my @before = times;
    my $start = time;
    my $peak = 0;
    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        open STDOUT, '>', '/dev/null';
        exec '/bin/sh', '-c', "exec env $command";
    }

    while (waitpid($pid, 1) == 0) {
        if (open my $f, '<', "/proc/$pid/status") {
            while (<$f>) {
                $peak = $1 if /^VmHWM:\s+(\d+)/ && $1 > $peak;
            }
        }
        sleep 0.002;
    }

    die "failed: $command\n" if $? >> 8 > 1;

    my @after = times;

    return (time - $start, $after[2] + $after[3] - $before[2] - $before[3],
        $peak / 1024);
}


for my $name (@names) {
    my $file = "$dir/lines";

    system(corpus_command($name) . " >$file") == 0 or die;

    system("head -n 100000 $file >$dir/part") == 0 or die;
    my ($ours, $theirs) = map { scalar `$_ $dir/part | cksum` }
        $dedup, "mawk '!s[\$0]++'";
    die "the output differs from awk's\n" if $ours ne $theirs;

    my $lines = `wc -l <$file` + 0;
    my $distinct = `$dedup $file | wc -l` + 0;
    my $bytes = (-s $file) / $lines - 1;

    printf "%s: %d lines of %.1f bytes, %d different\n\n"
        . "%-34s %8s %8s %8s %12s\n", $name, $lines, $bytes, $distinct,
        '', 's', 'CPU s', 'MB', 'B/different';

    for my $way (@ways) {
        my $command = $way->[1];
        $command =~ s/FILE/$file/;
        $command =~ s/LINES/$distinct/;

        my ($s, $cpu, $mb) = measure($command);
        printf "%-34s %8.2f %8.2f %8.1f %12.1f\n", $way->[0], $s, $cpu, $mb,
            $mb * 1048576 / $distinct;
    }

    print "\n";
}

exit if !$many;

# the founding filter: 50 million URLs, 4 bytes each, two minutes

for my $rate (0.01, 0.001) {
    system("mkfifo $dir/fifo$rate") == 0 or die;
    my $pid = fork // die;

    if ($pid == 0) {
        exec generator($many) . " >$dir/fifo$rate";
    }

    my @before = times;
    my ($s, undef, $mb)
        = measure("$dedup --filter $many,$rate $dir/fifo$rate");
    my @after = times;
    my $cpu = $after[2] + $after[3] - $before[2] - $before[3];
    waitpid $pid, 0;

    printf "%d generated URLs through --filter %s: %.1f s with their "
        . "generator on the other core, %.1f CPU s of dedup alone, "
        . "%.1f MB, %.2f B/URL\n", $many, $rate, $s, $cpu, $mb,
        $mb * 1048576 / $many;
}
