#!/usr/bin/perl

# urlstore dedup: what it prints, on a corpus and on odd lines; every option;
# packed input; a followed directory; exit codes.

use strict;
use warnings;

use Cwd qw(getcwd);
use File::Temp qw(tempdir);
use Test::More;
use Time::HiRes qw(sleep time);

use lib 't/lib';
use UrlStore::Corpora;

my $dedup = 'build/urlstore dedup';
my $dir = tempdir(CLEANUP => 1);


sub put
{
    my ($name, $text) = @_;

    open my $f, '>:raw', "$dir/$name" or die "$dir/$name: $!";
    print $f $text;
    close $f or die "$dir/$name: $!";

    return "$dir/$name";
}


sub get
{
    my ($name) = @_;

    open my $f, '<:raw', $name or return '';
    local $/;

    return scalar <$f> // '';
}


# runs dedup with the arguments; returns output, messages and exit code

sub run
{
    my ($arguments) = @_;

    system("$dedup $arguments >$dir/out 2>$dir/err");

    return (get("$dir/out"), get("$dir/err"), $? >> 8);
}


sub firsts
{
    my (%seen, @first);

    for (@_) {
        push @first, $_ unless $seen{$_}++;
    }

    return (\@first, \%seen);
}


my @lines = @{ corpus('html_news_blogs_pages', 100_000) };
put('urls', join '', map { "$_\n" } @lines);

my ($first, $seen) = firsts(@lines);
my $expected = join '', map { "$_\n" } @$first;

cmp_ok(@lines - @$first, '>', 30_000, 'the corpus has duplicates');


# lines as they are

my ($out, $err, $code) = run("$dir/urls");
ok($out eq $expected, 'each line of a file once, in order');
is($code, 0, 'done');
is($err, '', 'nothing to say');

($out, $err, $code) = run("<$dir/urls");
ok($out eq $expected, 'standard input');

($out) = run("- <$dir/urls");
ok($out eq $expected, 'standard input by name');

($out) = run("$dir/urls $dir/urls");
ok($out eq $expected, 'a file twice');

system("head -c 3000000 $dir/urls >$dir/a; tail -c +3000001 $dir/urls >$dir/b");
system("cat $dir/urls | $dedup >$dir/out");
ok(get("$dir/out") eq $expected, 'by pipe');

system("(cat $dir/a; sleep 0.3; cat $dir/b) | $dedup >$dir/out");
ok(get("$dir/out") eq $expected, 'by pipe, cut within a line');

my $odd = "a\n\nb\r\nb\n\na\0b\na\0c\n\xff\xfe\n\xff\xfe\n"
    . 'x' x 100000 . "\n" . 'x' x 100001 . "\nlast";
($out, $err, $code) = run(put('odd', $odd));
($first) = firsts(split /\n/, $odd);
is($out, join('', map { "$_\n" } @$first),
    'empty, binary and long lines, and a last one without its end');

($out, $err, $code) = run(put('none', ''));
is("$out$err$code", '0', 'no lines at all');

($out, $err, $code) = run(put('huge', "a\n" . 'y' x 3000000 . "\na\nb\n"));
is($out, "a\nb\n", 'a line of 3 MB is left out');
is($code, 1, 'and refused');
like($err, qr/1 lines left out: longer than 1048576 bytes/, 'and reported');


# packed

($first) = firsts(@lines);

for my $p (qw(gzip xz)) {
    system("$p -1 -c $dir/urls >$dir/urls.packed");

    ($out) = run("$dir/urls.packed");
    ok($out eq $expected, "$p: a file");

    ($out) = run("<$dir/urls.packed");
    ok($out eq $expected, "$p: standard input");

    system("cat $dir/urls.packed | $dedup >$dir/out");
    ok(get("$dir/out") eq $expected, "$p: a pipe");

    system("head -c 200000 $dir/urls.packed >$dir/cut");
    ($out, $err, $code) = run("$dir/cut");
    is($code, 2, "$p: cut short");
    like($err, qr/could not be unpacked whole/, "$p: and reported");
}


# files that cannot be read do not keep the others back

($out, $err, $code) = run("$dir/missing " . put('some', "x\n"));
is($out, "x\n", 'a missing file');
is($code, 2, 'is reported by the exit code');
like($err, qr/missing: open: No such file/, 'and a message');


# numbers

($out) = run("--ids $dir/urls");
my $n = 0;
ok($out eq join('', map { $n++ . "\t$_\n" } @$first), '--ids');

($out) = run("--count $dir/urls");
ok($out eq join('', map { "$seen->{$_}\t$_\n" } @$first), '--count');


# canonical

($out, $err, $code) = run('--normalize crawler ' . put('norm', <<'END'));
HTTP://www.Example.com:80/a/../b
https://www.example.com/b
http://example.com/b
http://example.com/c
ftp://example.com/
http://other.example/x#y
http://other.example/x

END
is($out, <<'END', '--normalize: canonical, one spelling of a site');
http://www.example.com/b
https://www.example.com/b
http://www.example.com/c
http://other.example/x
END
is($code, 1, 'a line was refused');
like($err, qr/1 lines refused: scheme/, 'and why');

($out, $err, $code) = run("--ids --normalize crawler $dir/norm");
like($out, qr{^0\t.*\n1\t.*\n2\t.*\n3\thttp://other.example/x\n\z},
    '--ids of canonical URLs');

($out, $err, $code) = run("-q --normalize crawler $dir/norm");
is($err, '', '-q does not say why');

system("build/urlstore normalize <$dir/urls 2>/dev/null | grep -v '^!'"
    . " | sed 's,//www\\.,//,' | sort -u >$dir/canonical");
($out) = run("-q --normalize crawler $dir/urls");
$n = () = $out =~ /\n/g;
my $sites = () = get("$dir/canonical") =~ /\n/g;
cmp_ok(abs($n - $sites), '<', 20, 'as many as without www. (but for hosts '
    . 'such as www.com)');


# the same as the store itself answers

system("build/urlstore import $dir/store <$dir/urls 2>/dev/null; "
    . "build/urlstore dump $dir/store >$dir/dump");
($out) = run("-q --ids --normalize crawler $dir/urls");
ok($out eq get("$dir/dump"), '--normalize: URLs and ids of a store');
is(scalar(() = $out =~ /\n/g), 66688, 'all of them');

($out) = run("-q --normalize crawler --count $dir/norm $dir/norm");
is($out, <<"END", '--count of canonical URLs');
4\thttp://www.example.com/b
2\thttps://www.example.com/b
2\thttp://www.example.com/c
4\thttp://other.example/x
END


# approximate

for my $rate (0.01, 0.0001) {
    ($out, $err, $code) = run('--filter ' . @$first . ",$rate $dir/urls");
    my %got = map { $_ => 1 } split /\n/, $out;

    is(scalar(grep { !exists $seen->{$_} } keys %got), 0,
        "--filter $rate: prints only what is there");
    is(scalar(keys %got), scalar(() = $out =~ /\n/g), 'and only once');
    cmp_ok(@$first - keys %got, '<=', 1.3 * $rate * @$first, 'misses few');
    is($code, 0, 'within its capacity');
}

($out, $err, $code) = run("--filter 1000,0.01 $dir/urls");
is($code, 1, 'a filter that was too small');
like($err, qr/made for 1000 lines and got \d+: its error has grown/,
    'reported');

SKIP: {
    skip 'vm.overcommit_memory is 2: all that is mapped counts', 2
        if get('/proc/sys/vm/overcommit_memory') == 2;

    my ($memory) = get('/proc/meminfo') =~ /^MemTotal: +(\d+)/;
    my $lines = $memory * 1000;

    ($out, $err, $code) = run("-q --filter $lines,0.001 "
        . put('few', "a\nb\na\n"));
    is($out, "a\nb\n", 'a filter larger than memory takes what it uses');
    is("$err$code", '0', 'and no more');
}


# too little memory

($out, $err, $code) = run("--memory 4M $dir/urls");
is($code, 2, '--memory reached');
like($err, qr/4 MB of memory are full after \d+ lines, \d+ of them different/,
    'and reported');
cmp_ok(length $out, '>', 1000000, 'what fitted is printed');
ok($out eq substr($expected, 0, length $out), 'and right');

($out, $err, $code) = run("-q --memory 4M --normalize crawler $dir/urls");
is($code, 2, '--memory reached, normalized');
like($err, qr/4 MB of memory are full after \d+ lines/, 'and reported');
cmp_ok(length $out, '>', 1000000, 'what fitted is printed');
ok(index(get("$dir/dump") =~ s/^\d+\t//gmr, $out) == 0, 'and right');

($out, $err, $code) = run("--memory 1M --filter 10000000,0.01 $dir/urls");
is($code, 2, 'a filter larger than --memory');


# usage

($out, $err, $code) = run('--help');
like($out, qr/^usage: urlstore dedup .*--follow DIR/s, '--help');
is($code, 0, 'is no error');

for my $bad ('--filter 5', '--filter 0,0.1', '--filter 10,2', '--memory 5x',
    '--normalize nothing', '--count --ids', '--ids --filter 10,0.1',
    "--follow $dir $dir/urls", '--nothing', "$dir/missing", $dir,
    "--follow $dir/missing")
{
    ($out, $err, $code) = run("$bad </dev/null");
    is($code, 2, "exit code 2: $bad");
    isnt($err, '', 'with a reason');
}

system("$dedup $dir/urls >/dev/full 2>$dir/err");
is($? >> 8, 2, 'a full disk');


# progress, on a terminal only

$out = `script -qec "$dedup $dir/urls 2>&1 >/dev/null" /dev/null`;
like($out, qr/100k lines, 67k new, .*\/s/, 'progress on a terminal');

$out = `script -qec "$dedup -q $dir/urls 2>&1 >/dev/null" /dev/null`;
is($out, '', 'not with -q');


# a followed directory

mkdir "$dir/in";
put('in/1', "a\nb\n");
system("touch -d '1 minute ago' $dir/in/1");
put('in/.hidden', "hidden\n");
put('in/x.tmp', "temporary\n");

my $pid = fork;

if ($pid == 0) {
    open STDOUT, '>', "$dir/out";
    exec 'build/urlstore', 'dedup', '--follow', "$dir/in";
}


sub follows
{
    my ($text, $name) = @_;
    my $end = time + 10;

    while (time < $end && get("$dir/out") ne $text) {
        sleep 0.05;
    }

    is(get("$dir/out"), $text, "--follow: $name");
}


follows("a\nb\n", 'a file that was there');

put('in/2', "b\nc\n");
follows("a\nb\nc\n", 'one that is written');

open my $slow, '>', "$dir/in/3";
print $slow "d\n";
$slow->flush;
sleep 0.5;
is(get("$dir/out"), "a\nb\nc\n", '--follow: one that is still written waits');
print $slow "e\n";
close $slow;
follows("a\nb\nc\nd\ne\n", 'until it is closed');

system("printf 'e\\nf\\n' | gzip >$dir/4.gz; mv $dir/4.gz $dir/in/");
follows("a\nb\nc\nd\ne\nf\n", 'one that is moved in, packed');

rename "$dir/in/x.tmp", "$dir/in/x";
follows("a\nb\nc\nd\ne\nf\ntemporary\n", 'one that gets its name');

put("in/many$_", "$_\n") for 1 .. 300;
follows(join('', map { "$_\n" } qw(a b c d e f temporary), 1 .. 300),
    'many at once');

system("gzip -c $dir/urls | head -c 1000 >$dir/cut.gz");
rename "$dir/cut.gz", "$dir/in/cut.gz";
put('in/after', "after\n");

my $end = time + 10;
sleep 0.05 while time < $end && get("$dir/out") !~ /\nafter\n\z/;
like(get("$dir/out"), qr/\nafter\n\z/, '--follow: a broken file is no end');

kill 'TERM', $pid;
waitpid $pid, 0;
is($? >> 8, 2, '--follow: ends by a signal, with 2 as a file was broken');

unlink "$dir/in/cut.gz";
$pid = fork;

if ($pid == 0) {
    open STDOUT, '>', "$dir/out";
    exec 'build/urlstore', 'dedup', '--count', '--follow', "$dir/in";
}

sleep 3;
kill 'INT', $pid;
waitpid $pid, 0;
like(get("$dir/out"), qr/^2\te$/m, '--follow: counts at the end');
is($?, 0, '--follow: ends with 0 if all could be read');



# the examples of docs/dedup.md

my @examples = grep { !/\[/ } get('docs/dedup.md')
    =~ /^    ((?:xz -dc|urlstore dedup) .*)$/gm;

is(scalar @examples, 2, 'two examples');

system("xz -1 -c $dir/urls >$dir/links.xz; mkdir $dir/spool");
put('spool/links', $expected);
system("touch -d '1 minute ago' $dir/spool/links");

for my $example (@examples) {
    my $command = $example =~ s{/var/spool/links}{spool}r;
    my $urlstore = getcwd . '/build/urlstore';

    $command =~ s/\burlstore\b/timeout 10 $urlstore/;
    $command =~ s/timeout 10/timeout -s TERM 5/ if $command =~ /--follow/;

    system("cd $dir && $command 2>$dir/err");
    cmp_ok(scalar(() = get("$dir/$1") =~ /\n/g), '>', 66_000, $example)
        if $command =~ /(\w+\.txt)$/;
}

done_testing();
