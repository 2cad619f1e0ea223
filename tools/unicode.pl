#!/usr/bin/perl

# Makes src/url/us_idna_data.c from the files of one version of Unicode, as
# https://www.unicode.org/Public/17.0.0/ publishes them:
#
#     tools/unicode.pl DIRECTORY > src/url/us_idna_data.c
#
# DIRECTORY has IdnaMappingTable.txt (idna/), UnicodeData.txt,
# DerivedNormalizationProps.txt (ucd/) and DerivedJoiningType.txt
# (ucd/extracted/).  Their SHA-256 sums are part of this script: a profile
# means the same tables for ever.  us_idna.c says how the tables are read.

use strict;
use warnings;

use Digest::SHA;
use Encode;

my $version = '17.0';
my %sums = (
    'IdnaMappingTable.txt' =>
        '87f05505dc026fdb2bff16132bdc68a8014675836882a9a2b1844540ad3be382',
    'UnicodeData.txt' =>
        '2e1efc1dcb59c575eedf5ccae60f95229f706ee6d031835247d843c11d96470c',
    'DerivedNormalizationProps.txt' =>
        '71fd6a206a2c0cdd41feb6b7f656aa31091db45e9cedc926985d718397f9e488',
    'DerivedJoiningType.txt' =>
        'f39ebe974825d6736aee15582250307aa532b2cfab3caf3f86bd23fddc9c5c4d',
);

die "usage: $0 DIRECTORY\n" unless @ARGV == 1;
my $dir = shift;

my $leaf = 3;                    # bits of a code point in a leaf of the trie
my $inner = 4;                   # and in an inner node


# the fields of each line, without comments

sub table
{
    my ($name) = @_;

    my $sum = Digest::SHA->new(256)->addfile("$dir/$name")->hexdigest;
    $sums{$name} eq $sum or die "$dir/$name has SHA-256 $sum\n";

    open my $fh, '<', "$dir/$name" or die "$dir/$name: $!\n";

    my @rows;

    while (<$fh>) {
        chomp;
        s/\s*(#.*)?$//;
        push @rows, [ split /\s*;\s*/, $_, -1 ] if length;
    }

    return @rows;
}


sub range
{
    my ($from, $to) = map { hex } split /\.\./, $_[0];

    return $from .. $to // $from;
}


sub points
{
    return map { hex } split ' ', $_[0];
}


# --- what is published

my (%status, %to, %joining, %bidi, %ccc, %mark, %pair, %excluded);

for (table('IdnaMappingTable.txt')) {
    my ($range, $status, $to) = @$_;

    # a deviation is a letter like others: processing is not transitional

    for my $c (range($range)) {
        $status{$c} = $status eq 'deviation' ? 'valid' : $status;
        $to{$c} = [ points($to) ] if $status eq 'mapped';
    }
}

for (table('DerivedJoiningType.txt')) {
    my ($range, $type) = @$_;
    $joining{$_} = $type for range($range);
}

for (table('DerivedNormalizationProps.txt')) {
    my ($range, $property) = @$_;

    if ($property eq 'Full_Composition_Exclusion') {
        $excluded{$_} = 1 for range($range);
    }
}

my $first;

for (table('UnicodeData.txt')) {
    my ($c, $name, $category, $ccc, $bidi, $decomposition) = @$_;
    my $from = $c = hex $c;

    if ($name =~ /First>$/) {
        $first = $c;
        next;
    }

    $from = $first if $name =~ /Last>$/;

    for ($from .. $c) {
        $bidi{$_} = $bidi;
        $ccc{$_} = $ccc;
        $mark{$_} = $category =~ /^M/;
    }

    if ($decomposition =~ /^[0-9A-F]+ / && !$excluded{$c}) {
        $pair{$c} = [ points($decomposition) ];
    }
}

# --- only what can be met: letters that are valid

sub valid
{
    return ($status{$_[0]} // '') eq 'valid';
}

for my $c (keys %pair) {
    my ($a, $b) = @{$pair{$c}};

    delete $pair{$c} unless valid($a) && valid($b);
}

for my $c (keys %to) {
    valid($_) or die sprintf "%04X is mapped to %04X\n", $c, $_
        for @{$to{$c}};
}

my %combines = map { $$_[1] => 1 } values %pair;
$combines{$_} = 1 for 0x1161 .. 0x1175, 0x11a8 .. 0x11c2;

my @all = sort { $a <=> $b } grep { $status{$_} ne 'disallowed' } keys %status;
my ($end) = (grep { $_ < 0xe0000 } @all)[-1];
my @above = grep { $_ > $end } @all;

$end = ($end >> $leaf + $inner) + 1 << $leaf + $inner;
@above == 240 && $above[0] == 0xe0100 && !grep({ $status{$_} ne 'ignored' }
    @above) or die "other code points above\n";

# the most code points that a byte of UTF-8 becomes, decomposed

my $most = 0;

sub decomposed
{
    my $n = 0;

    for (@_) {
        $n += $_ >= 0xac00 && $_ <= 0xd7a3 ? 3
            : $pair{$_} ? decomposed(@{$pair{$_}}) : 1;
    }

    return $n;
}

for my $c (@all) {
    my $n = decomposed($status{$c} eq 'mapped' ? @{$to{$c}} : $c)
        / ($c < 0x80 ? 1 : $c < 0x800 ? 2 : $c < 0x10000 ? 3 : 4);
    $most = $n if $n > $most;
}

$most = int($most) + ($most > int $most);

# --- classes, and the trie of them

my @class = map { "$_, 0, L, U, 0" } qw(DISALLOWED IGNORED MAPPED);
my %class = map { $class[$_] => $_ } 0 .. $#class;

sub class
{
    my ($c) = @_;

    my $status = $status{$c} // 'disallowed';
    my $text = $status ne 'valid' ? "\U$status\E, 0, L, U, 0"
        : sprintf 'VALID, %d, %s, %s, %s', $ccc{$c} // 0, $bidi{$c} // 'L',
            $joining{$c} // 'U', join('|', $mark{$c} ? 'MARK' : (),
            $combines{$c} ? 'COMBINES' : (), $pair{$c} ? 'PAIR' : ()) || 0;

    return $class{$text} //= push(@class, $text) - 1;
}

# the blocks of SIZE, each once; the list becomes that of their numbers

sub blocks
{
    my ($size, $list) = @_;
    my (%seen, @blocks, @numbers);

    while (my @block = splice @$list, 0, $size) {
        my $n = $seen{"@block"} //= push(@blocks, \@block) - 1;
        push @numbers, $n;
    }

    @$list = @numbers;

    return map { @$_ } @blocks;
}

my @top = map { class($_) } 0 .. $end - 1;
my @leaves = blocks(1 << $leaf, \@top);
my @inner = blocks(1 << $inner, \@top);

@class <= 256 && @top && !grep({ $_ > 255 } @top) or die "too many\n";

# --- mappings: runs of code points, each or each other one of which is mapped
# to the next letter, or to the next letters of the pool

my (@runs, @pool);

for my $c (sort { $a <=> $b } keys %to) {
    my @to = map { $_ < 0x10000 || @{$to{$c}} == 1 ? $_
        : unpack 'n2', encode('UTF-16BE', chr) } @{$to{$c}};
    my $run = $runs[-1];
    my $one = @to == 1;

    if ($run && $$run{n} < 128 && $$run{len} == @to) {
        my $step = $$run{n} > 1 ? $$run{step} : $c - $$run{from};
        my $k = $$run{n} * $step;

        if ($step <= 2 && $c == $$run{from} + $k
            && ($one ? $to[0] == $$run{to} + $k : $step == 1))
        {
            $$run{n}++;
            $$run{step} = $step;
            push @pool, @to unless $one;
            next;
        }
    }

    push @runs, { from => $c, n => 1, step => 1, len => scalar @to,
        to => $one ? $to[0] : scalar @pool };
    push @pool, @to unless $one;
}

# --- the file

my $bytes;

sub array
{
    my ($type, $name, $size, $format, @v) = @_;
    my $line = '   ';

    $bytes += $size * @v;
    printf "\n\nconst %s  %s[%d] = {\n", $type, $name, scalar @v;

    for (@v) {
        my $text = sprintf " $format", ref $_ ? @$_ : $_;

        if (length($line) + length $text > 79) {
            print "$line\n";
            $line = '   ';
        }

        $line .= $text;
    }

    print "$line\n};\n";
}


sub structs
{
    my ($name, $size, $format, @v) = @_;

    array("${name}_t", $name, $size, $format, @v);
}

print <<"END";

/*
 * The tables of us_idna.c, of Unicode $version.  Made by tools/unicode.pl.
 *
 * Unicode data files: Copyright 1991-2025 Unicode, Inc., used under the Unicode
 * License v3 (https://www.unicode.org/license.txt).
 */


#include "us_idna_data.h"


END

printf "const us_idna_class_t  us_idna_class[%d] = {\n", scalar @class;

for (@class) {
    my ($kind, $ccc, $bidi, $joining, $flags) = split /, /;

    $flags =~ s/(\w{2,})/US_IDNA_$1/g;
    printf "    { US_IDNA_%s, %d, US_BIDI_%s, US_JOIN_%s,\n      %s },\n",
        $kind, $ccc, $bidi, $joining, $flags =~ s/\|/ | /gr;
}

print "};\n";
$bytes += 5 * @class;

array('uint8_t', 'us_idna_top', 1, '0x%02x,', @top);
array('uint16_t', 'us_idna_inner', 2, '0x%03x,', @inner);
array('uint8_t', 'us_idna_leaf', 1, '0x%02x,', @leaves);

structs('us_idna_run', 8, '{ 0x%08x, 0x%08x },', map {
    [ $$_{from} << 8 | $$_{n} - 1 << 1 | $$_{step} - 1,
      $$_{len} == 1 ? $$_{to} : 1 << 31 | $$_{len} << 16 | $$_{to} ] } @runs);
array('uint16_t', 'us_idna_pool', 2, '0x%04x,', @pool);

my @pairs = sort { $a <=> $b } keys %pair;
my @order = sort {
    my ($p, $q) = ($pair{$pairs[$a]}, $pair{$pairs[$b]});
    $$p[0] <=> $$q[0] || $$p[1] <=> $$q[1] } 0 .. $#pairs;

structs('us_idna_pair', 12, '{ 0x%05x, 0x%05x, 0x%05x },',
    map { [ $_, @{$pair{$_}} ] } @pairs);
array('uint16_t', 'us_idna_pair_order', 2, '0x%03x,', @order);

# --- the constants of the header are these

open my $fh, '<', 'src/url/us_idna_data.h' or die "us_idna_data.h: $!\n";
my %header = map { /^#define US_IDNA_(\w+) +(\w+)$/ } <$fh>;

for ([ LEAF => $leaf ], [ INNER => $inner ], [ END => sprintf '%#x', $end ],
    [ RUNS => scalar @runs ], [ PAIRS => scalar @pairs ],
    [ EXPANSION => $most ])
{
    my ($name, $value) = @$_;

    ($header{$name} // '') eq $value
        or die "us_idna_data.h: US_IDNA_$name is $value\n";
}

printf STDERR "%d bytes: %d classes, trie %d, %d runs, pool %d, %d pairs\n",
    $bytes, scalar @class, @top + 2 * @inner + @leaves, scalar @runs,
    scalar @pool, scalar @pairs;
