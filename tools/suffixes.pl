#!/usr/bin/perl

# Makes src/url/us_suffix_data.c from the public suffix list, as
# https://publicsuffix.org/list/public_suffix_list.dat publishes it:
#
#     tools/suffixes.pl public_suffix_list.dat > src/url/us_suffix_data.c
#
# Its SHA-256 sum is part of this script: a profile means the same list for
# ever.  That address has the list of today; that of $date is in the history of
# the file in https://github.com/publicsuffix/list.  build/urlstore writes names
# of other letters as ASCII.

use strict;
use warnings;

use Digest::SHA;
use File::Temp qw(tempfile);

my $date = '2026-08-19';
my $known = 'df6306ec61971424ad259757b399911f4d414486629a5a00e299a2b6c7957089';

die "usage: $0 LIST\n" unless @ARGV == 1;
my $file = shift;
my $sum = Digest::SHA->new(256)->addfile($file)->hexdigest;
$sum eq $known or die "$file has SHA-256 $sum\n";

# a rule ends at white space

open my $in, '<', $file or die "$file: $!\n";
my @lines = grep { length && !m{^//} } map { s/\s.*//sr } <$in>;

my ($out, $names) = tempfile(UNLINK => 1);
print $out map { 'http://' . s/^(\*\.|!)//r . "\n" } @lines;
close $out;
my @ascii = split /\n/, `build/urlstore normalize $names`;

@lines == @ascii or die scalar @lines, ' rules, ', scalar @ascii, " names\n";

# a rule "*.kobe.jp" makes kobe.jp a suffix, too, as libpsl has it

my %rules = ('=' => {}, '*' => {}, '!' => {});

for my $i (0 .. $#lines) {
    my $kind = $lines[$i] =~ /^([*!])/ ? $1 : '=';
    my ($name) = $ascii[$i] =~ m{^http://([a-z0-9.-]+)/$}
        or die "$lines[$i]: $ascii[$i]\n";

    $rules{$kind}{$name} = 1;
    $rules{'='}{$name} = 1 if $kind eq '*';
}

print <<"END";

/*
 * The public suffix list of $date, for us_site.c.  Made by
 * tools/suffixes.pl.
 *
 * This Source Code Form is subject to the terms of the Mozilla Public License,
 * v. 2.0. If a copy of the MPL was not distributed with this file, You can
 * obtain one at https://mozilla.org/MPL/2.0/.
 */


#include "us_suffix_data.h"


END

# names of one length stand together, sorted

my ($at, $text, %group) = (0, '');

for my $kind ('=', '*', '!') {
    for my $name (sort { length $a <=> length $b || $a cmp $b }
        keys %{$rules{$kind}})
    {
        my $group = $group{$kind}[length $name] //= [ $at, 0 ];

        $$group[1]++;
        $text .= $name;
        $at += length $name;
    }
}

print "const uint8_t  us_suffix_names[] = \"\"\n";
print qq(    "$_"\n) for $text =~ /.{1,72}/g;
print ";\n";

my $longest = $#{$group{'='}};

for ([ rule => '=' ], [ wild => '*' ], [ except => '!' ]) {
    my ($name, $kind) = @$_;

    print "\n\nconst us_suffixes_t  us_suffix_$name\[US_SUFFIX_MAX + 1] = {\n";
    printf "    { %d, %d },\n", @{$group{$kind}[$_] // [ 0, 0 ]}
        for 0 .. $longest;
    print "};\n";
}

print STDERR 'US_SUFFIX_MAX is ', $longest, ', ', scalar keys %{$rules{'='}},
    " names, $at bytes\n";
