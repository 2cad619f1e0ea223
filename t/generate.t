#!/usr/bin/perl

# The generator of URLs that larger tests and benchmarks take: the same bytes
# for the same seed, all different, canonical, and alike to the corpora.

use strict;
use warnings;

use File::Temp qw(tempdir);
use Test::More;

my $dir = tempdir(CLEANUP => 1);
my $n = 100_000;

is(system('make -s generate >/dev/null'), 0, 'built');


sub generate
{
    my ($options) = @_;

    open my $f, '-|', "build/generate $options" or die $!;
    my @lines = <$f>;
    close $f or return;

    return @lines;
}


my @a = generate("-n $n -s 1");
my @b = generate("-n $n -s 1");
my @c = generate("-n $n -s 2");

is(scalar(@a), $n, 'as many as asked for');
ok("@a" eq "@b", 'equal seeds, equal URLs');

my %a = map { $_ => 1 } @a;
is(scalar(keys %a), $n, 'all different');
cmp_ok(scalar(grep { $a{$_} } @c), '<', $n / 1000, 'another seed, others');

my @more = generate('-n 200000 -s 1');
ok("@more[0 .. $n - 1]" eq "@a", 'more of them begin with the same');

my @d = generate("-n $n -s 1 -d 0.5");
my %d = map { $_ => 1 } @d;
my $share = 1 - keys(%d) / $n;
cmp_ok(abs($share - 0.5), '<', 0.03, "duplicates: $share of 0.5");

is(system('build/generate -d 2 2>/dev/null') >> 8, 2, 'usage');


# canonical already: what is measured with them is not the normalizer

open my $f, '>', "$dir/a" or die $!;
print $f @a;
close $f;

is(system("build/urlstore normalize <$dir/a | cmp -s - $dir/a"), 0,
    'canonical');


# alike: between the corpora in what a compressor makes of them, in length, in
# sites and in queries (bench/scale has the table)

my %site;
$site{(split m{/})[2]}++ for @a;
my ($most) = sort { $b <=> $a } values %site;

cmp_ok(scalar(keys %site) / $n, '>', 0.02, 'many sites');
cmp_ok(scalar(keys %site) / $n, '<', 0.2, 'not too many');
cmp_ok($most / $n, '>', 0.01, 'large ones among them');
cmp_ok($most / $n, '<', 0.2, 'not too large');

my $bytes = (-s "$dir/a") / $n - 1;
my $xz = `xz -6c $dir/a | wc -c` / $n;
my $queries = grep { /\?/ } @a;

cmp_ok(abs($bytes - 62), '<', 8, "$bytes bytes a URL");
cmp_ok(abs($xz - 12.5), '<', 2.5, "$xz by xz");
cmp_ok(abs($queries / $n - 0.13), '<', 0.07, "$queries with a query");

done_testing();
