#!/usr/bin/perl

# All corpora, in file order and shuffled, beside Redis, Valkey, the structures
# that Debian ships and the founding paper's: bytes per URL in one table, then
# the times.  The rows of one corpus come from bench/peers.
#
#     make bench-engine        LIMIT=N: at most N lines of each (all)

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../../t/lib";

use UrlStore::Corpora;

my $top = "$FindBin::Bin/../..";
my @names = corpus_names();
my (@rows, %cell, @columns);

$| = 1;
announce(0, @names);

# stopped by a signal: the table of what there is

$SIG{TERM} = $SIG{INT} = sub { table(); exit 1 };

for my $name (@names) {
    for my $seed ('', 1) {
        my $column = $seed ? "$name shuffled" : $name;
        push @columns, $column;

        local $ENV{FILE} = corpus_file($name);
        local $ENV{SHUFFLE} = $seed;

        open my $f, '-|', "$top/bench/peers/run.pl" or die $!;

        while (<$f>) {
            next if !/^(.{38})(?: +\S+){3} +(\S+) +(\S+) +(\S+) +(\S+)$/
                || $1 =~ /^\s*$/;

            my ($what, @f) = ($1, $2, $3, $4, $5);
            $what =~ s/\s+$//;
            push @rows, $what if !grep { $_ eq $what } @rows;
            $cell{$what}{$column} = \@f;
        }

        close $f or die "bench/peers/run.pl failed for $name\n";
        print STDERR "$column\n";
    }
}

table();


# one for each figure: a line for each corpus, a column for each structure

sub table
{
    my @heads = ('Bytes per URL', 'Add, ns', 'Hit, ns', 'Miss, ns');

    for my $k (0 .. 3) {
        my @with = grep {
            my $what = $_;
            grep { ($cell{$what}{$_}[$k] // '-') ne '-' } @columns;
        } @rows;

        print "\n## $heads[$k]\n\n| | ", join(' | ', @with), " |\n|---|",
            '--:|' x @with, "\n";

        for my $column (@columns) {
            print "| $column | ", join(' | ',
                map { $cell{$_}{$column} ? $cell{$_}{$column}[$k] : '' } @with),
                " |\n";
        }
    }
}
