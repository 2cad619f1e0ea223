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

done_testing();
