#!/usr/bin/perl

# The search for traces of URLs: it finds what is there, in files and in the
# memory of a process, and what us_wipe_heap() wipes is not there any more.

use strict;
use warnings;

use lib 't/lib';
use File::Temp qw(tempdir);
use IPC::Open2;
use Test::More;
use UrlStore::Corpora;

my $dir = tempdir(CLEANUP => 1);
my @urls = grep { length > 40 } @{ corpus('reddit_submissions', 200) };
my $gone = shift @urls;

sub file
{
    my ($name, @lines) = @_;

    open my $f, '>', "$dir/$name" or die $!;
    print $f map { "$_\n" } @lines;
    close $f or die $!;

    return "$dir/$name";
}

sub traces
{
    my $text = `build/traces/traces $dir/erased $dir/kept @_ 2>&1`;

    return ($? >> 8, $text);
}

file(erased => $gone);
file(kept => @urls, substr $gone, 0, 20);


# --- files

my ($status, $text) = traces(file(a => @urls));
is($status, 0, 'nothing is found');
like($text, qr/^\d+ pieces, \d+ bytes searched, 0 found$/, '  says so');

mkdir "$dir/sub";
my $end = substr $gone, -12;

for my $at (0, 1, 2**20 - 13 .. 2**20 + 1, 2**21 - 6) {
    open my $f, '>', "$dir/sub/b" or die $!;
    print $f 'x' x $at, $end, 'x' x 20;
    close $f;

    ($status, $text) = traces("$dir/sub");
    is($status, 1, "12 bytes at $at");
    like($text, qr{/sub/b: at @{[sprintf '%x', $at]}: \Q$end\E$}m, '  where')
        if $at == 1 || $at == 2**20 - 5;
}

file('sub/b' => substr $gone, -11);
is((traces("$dir/sub"))[0], 0, '11 bytes are none');
file('sub/b' => substr $gone, 0, 20);
is((traces("$dir/sub"))[0], 0, 'nor is what is kept');
is((traces("$dir/none"))[0], 2, 'a target that is not there');
is((traces('pid:1234567'))[0], 2, 'a process that is not there');


# --- memory

my $pid = open2(my $out, my $in, 'build/traces/left', "$dir/erased");

is(scalar <$out>, "left\n", 'a process leaves it in memory');
($status, $text) = traces("pid:$pid");
is($status, 1, 'found');
like($text, qr/^process $pid (?:\[heap\]|\(anonymous\)): at /m,
    '  in the heap');

print $in "\n";
$in->flush;
is(scalar <$out>, "wiped\n", 'it is wiped');
($status, $text) = traces("pid:$pid");
is($status, 0, 'nothing is found');
diag($text) if $status;

close $in;
waitpid $pid, 0;

done_testing();
