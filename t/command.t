#!/usr/bin/perl

# The command as a whole: --help of each subcommand, what is no command, and
# arguments that are none, which say how it is used and touch nothing.

use strict;
use warnings;

use Cwd qw(getcwd);
use File::Temp qw(tempdir);
use Test::More;

my $urlstore = getcwd . '/build/urlstore';
my $dir = tempdir(CLEANUP => 1);

chdir $dir or die "$dir: $!";


# standard output, standard error and the exit code

sub run
{
    my ($arguments) = @_;

    my $out = `$urlstore $arguments </dev/null 2>err`;
    my $code = $? >> 8;

    open my $f, '<', 'err' or die "err: $!";
    local $/;

    return ($out, scalar <$f> // '', $code);
}


my ($all, $err, $code) = run('--help');
is($code, 0, '--help');

my @commands = $all =~ /^  urlstore (\w+) /gm;
is("@commands", 'bench dedup dump hash import normalize stat verify',
    'every command');

for my $command (@commands) {
    my ($out, $err, $code) = run("$command --help");

    like($out, qr/^usage: urlstore $command /, "$command --help");
    is("$err$code", '0', 'is no error');
    ok(index($all, $out =~ s/^usage: //r) > 0, 'and as in the list');
}

for my $bad ('dump', 'dump --delta .', 'dump --sorted --memory 5x .',
    'dump --sorted --memory -1m .',
    'dump --sorted --memory 99999999999999999999g .', 'stat', 'stat . .',
    'verify --slow .', 'import', 'import --profle', 'import --profile x y',
    'normalize x', 'normalize --nothing', 'hash --nothing', 'dedup --nothing',
    'bench')
{
    my ($command) = $bad =~ /^(\w+)/;
    my ($out, $err, $code) = run($bad);

    is("$out$code", '2', "$bad: refused");
    like($err, qr/^usage: urlstore $command /m, 'and told how it is used');
}

for my $bad ('', 'nothing') {
    my ($out, $err, $code) = run($bad);

    is("$out$code", '2', "\"$bad\" is no command");
    like($err, qr/^  urlstore dedup /m, 'which are told');
}

is(join(' ', glob '*'), 'err', 'nothing was made');


# input that cannot be read, output that cannot be written

my $lines = join '', map "http://a.test/$_\n", 1 .. 5000;

{
    open my $f, '>', 'lines' or die "lines: $!";
    print $f $lines;
}

my $import = `$urlstore import data <lines 2>&1`;
is($?, 0, 'a directory');

for my $command ('import data', 'normalize', 'hash', 'dedup', 'bench --json -')
{
    my $out = `$urlstore $command <. 2>&1 >/dev/null`;

    is($? >> 8, 2, "$command: an error of the input is told");
    like($out, qr/^urlstore: standard input/m, 'and of which');
}

for my $command ('normalize <lines', 'hash <lines', 'dedup lines',
    'bench --json lines', 'dump data', 'dump --sorted data', 'stat data',
    'verify data', 'stat --help', '--help')
{
    my $out = `$urlstore $command 2>&1 >/dev/full`;

    is($? >> 8, 2, "$command: an error of the output is told");
    like($out, qr/No space left/, 'and which');
}

done_testing();
