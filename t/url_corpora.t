#!/usr/bin/perl

# The laws of the normalizer (fuzz/laws.c: idempotence in every profile,
# resolution of links, the fast path against the parser, both spellings of a
# site) on real URLs: 50,000 lines of each corpus, or all with US_FULL=1.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(basename dirname);
use Test::More;

my $top = abs_path(dirname(__FILE__) . '/..');
my $dir = $ENV{US_CORPORA} || "$top/../shared/corpora";

plan skip_all => "no corpora in $dir" if !-d $dir;

my $sample = 50000;
my %lines;

open my $in, '<', "$dir/README.md" or die "$dir/README.md: $!\n";

while (<$in>) {
    $lines{$1} //= $2 if /^\| (\w+) \| (\d+) \|/;
}

for my $file (glob "$dir/*.txt.xz") {
    my $name = basename($file, '.txt.xz');

    # a hundred lines in a row, again and again, so that pages have links

    my $step = $ENV{US_FULL} ? 1 : int(($lines{$name} || 1) / $sample) || 1;
    my $awk = "int((NR - 1) / 100) % $step == 0";

    my $out = `xz -dc $file | awk '$awk' | $top/build/laws 2>&1`;

    my ($n, $links, $good) =
        $out =~ /^(\d+) lines, (\d+) links, (\d+) canonical$/;

    ok(defined $n, "$name: the laws hold") or diag(tail($out)), next;

    cmp_ok($n, '>=', $ENV{US_FULL} ? $lines{$name} - 1
                     : min($sample, $lines{$name} - 1),
           "$name: $n lines");
    cmp_ok($links, '>', $n / 10, "$name: $links relative links");
    cmp_ok($good, '>', 0.99 * $n, "$name: $good have a canonical form");
}

done_testing();


sub min
{
    my ($a, $b) = @_;

    return $a < $b ? $a : $b;
}


sub tail
{
    my ($s) = @_;

    return length $s > 2000 ? substr($s, -2000) : $s;
}
