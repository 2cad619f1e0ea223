#!/usr/bin/perl

# Writes the seeds of a fuzzer as files: unpack.pl FILE DIRECTORY.  A seed is
# a line, with \n, \r, \t, \\ and \xHH as in C; "#" begins a comment.

use strict;
use warnings;

use File::Path qw(make_path);

my ($file, $dir) = @ARGV;

my %escape = (n => "\n", r => "\r", t => "\t", '\\' => '\\');

make_path($dir);

open my $in, '<:raw', $file or die "$file: $!\n";

while (my $line = <$in>) {
    next if $line =~ /^#/;
    chomp $line;

    $line =~ s/\\(?:x([0-9a-f]{2})|(.))/
        defined $1 ? chr hex $1 : $escape{$2} \/\/ die "$file:$.: \\$2\n"/ge;

    open my $out, '>:raw', "$dir\/$." or die "$dir\/$.: $!\n";
    print $out $line;
    close $out or die "$dir\/$.: $!\n";
}
