#!/usr/bin/perl

# urlstore hash: columns, spellings of one site, refusals.

use strict;
use warnings;

use Test::More;


sub hash
{
    my $out = join '', map { "'$_' " } @_;

    $out = `build/urlstore hash $out </dev/null`;

    return ($out, $? >> 8);
}


my ($out, $code) = hash('http://a.b/', 'http://a.b/ab');

# 31 h + c: "a.b", "/" and "/ab"
is($out, "94741\t47\thttp://a.b/\n94741\t15504\thttp://a.b/ab\n", 'values');
is($code, 0, 'done');

my ($www) = hash('HTTPS://www.Example.com/x');
my ($bare) = hash('http://example.com/x');
$www =~ s/http.*//;
$bare =~ s/http.*//;
is($www, $bare, 'one site');

($out, $code) = hash('mailto:a@b.c', 'http://a.b/');
like($out, qr{^!scheme\n94741\t47\t}, 'refused, and on');
is($code, 1, 'exit code');

is(`printf 'http://a.b/\n' | build/urlstore hash`, "94741\t47\thttp://a.b/\n",
    'from standard input');

system('build/urlstore hash --nothing 2>/dev/null');
is($? >> 8, 2, 'usage');

done_testing();
