#!/usr/bin/perl

# The laws of the normalizer (fuzz/laws.c: idempotence in every profile,
# resolution of links, the fast path against the parser, both spellings of a
# site) on real URLs: the first 20,000 lines of each list, or all with
# US_FULL=1 (make test-full).

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Test::More;

use lib dirname(abs_path(__FILE__)) . '/lib';
use UrlStore::Corpora;

my $top = abs_path(dirname(__FILE__) . '/..');
my @names = corpus_names();

cmp_ok(scalar @names, '>=', 11, 'eleven lists');

for my $name (@names) {
    my $head = $ENV{US_FULL} ? 'cat' : 'head -n 20000';
    my $list = "$top/tools/corpus.sh cat $name | $head";
    my $lines = `$list | wc -l`;
    my $out = `$list | $top/build/laws 2>&1`;

    my ($n, $links, $good) =
        $out =~ /^(\d+) lines, (\d+) links, (\d+) canonical$/;

    ok(defined $n, "$name: the laws hold") or diag(tail($out)), next;

    cmp_ok($n, '==', $lines, "$name: all of $lines lines");
    cmp_ok($links, '>', $n / 10, "$name: $links relative links");
    cmp_ok($good, '>', 0.99 * $n, "$name: $good have a canonical form");
}

done_testing();


sub tail
{
    my ($s) = @_;

    return length $s > 2000 ? substr($s, -2000) : $s;
}
