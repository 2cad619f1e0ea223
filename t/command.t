#!/usr/bin/perl

# The command as a whole: --help, man pages and completions, what is no
# command, and wrong arguments, which print the usage and touch nothing.

use strict;
use warnings;

use lib 't/lib';

use File::Temp qw(tempdir);

use UrlStore::Test;

my $urlstore = "$UrlStore::Test::TOP/build/urlstore";
my $dir = tempdir(CLEANUP => 1);

chdir $dir or die "$dir: $!";


# standard output, standard error and the exit code

sub run
{
    my ($arguments) = @_;

    my $out = `$urlstore $arguments </dev/null 2>err`;
    my $code = $? >> 8;

    return ($out, slurp('err'), $code);
}


my ($all, $err, $code) = run('--help');
is($code, 0, '--help');

my @commands = $all =~ /^  (\w+)  /gm;
is("@commands", 'add backup cluster dedup dump erase get hash help import '
    . 'normalize rekey restore seen set size stat verify version',
    'every command');

my ($bash) = run('help --bash');
my ($zsh) = run('help --zsh');
my ($man) = run('help --man');

like($bash, qr/--help --version @commands'/, 'bash completes commands');
is(system('bash', '-n', '-c', $bash), 0, '... in its syntax');

for my $command (@commands) {
    my ($out, $err, $code) = run("$command --help");

    like($out, qr/^usage: urlstore $command\b/, "$command --help");
    is("$err$code", '0', 'is no error');
    is((run("help $command"))[0], $out, "help $command");

    # each option of the synopsis, in each form

    my %text = (
        help => $out =~ s/.*^Options://smr,
        bash => join(' ', $bash =~ /^ +$command\) words='(.*)'/m),
        zsh => join(' ', $zsh =~ /^$command\)(.*?);;/ms),
        man => (run("help --man $command"))[0] =~ s/\\-/-/gr,
    );

    for my $option ($out =~ /\[(--\w+)/g) {
        is(join(' ', grep { $text{$_} !~ /$option\b/ } sort keys %text), '',
            "$option is everywhere");
    }

    like($man, qr/urlstore\\-$command \(1\)/, 'its man page is referred to');
}

my ($version) = run('--version');
like(slurp("$UrlStore::Test::TOP/src/us_version.h"),
    qr/"@{[$version =~ s{^urlstore (.*)\n}{$1}r]}"/,
    "--version: $version");
$version =~ s/^urlstore |\n//g;
like((run('version'))[0], qr/\Aurlstore   \Q$version\E
commit     (?:[0-9a-f]{12}|unknown)
nginx      [0-9.]+
formats    journal \d+, snapshot \d+, .*, zone \d+, filter \d+
keys       \d+
\z/,
    'version: commit, nginx, formats');

for my $bad ('backup', 'backup .', 'backup --rate x . y',
    'backup --fast . y', 'backup . y z', 'restore', 'restore --rate 1m .',
    'restore . y z', 'dump', 'dump --delta .', 'dump --sorted --memory 5x .',
    'dump --sorted --memory -1m .',
    'dump --sorted --memory 99999999999999999999g .', 'stat', 'stat . .',
    'verify --slow .', 'import', 'import --profle', 'import --profile x y',
    'normalize --nothing', 'hash --nothing', 'dedup --nothing',
    'help --nothing', 'help --man --bash', 'help --bash dump', 'help a b')
{
    my ($command) = $bad =~ /^(\w+)/;
    my ($out, $err, $code) = run($bad);

    is("$out$code", '2', "$bad: refused");
    like($err, qr/^usage: urlstore $command /m, 'and how it is used');
}

for my $bad ('', 'nothing') {
    my ($out, $err, $code) = run($bad);

    is("$out$code", '2', "\"$bad\" is no command");
    like($err, qr/^  dedup /m, 'which are listed');
}

is(join(' ', glob '*'), 'err', 'nothing was made');


# one input layer: files, standard input, packed or not

my @urls = map { "http://in.test/$_" } 1 .. 1000;

spew('urls', join '', map { "$_\n" } @urls);
system('for p in gzip xz zstd; do $p -qc <urls >urls.$p; done');

for my $input ('urls', 'urls.gzip', 'urls.xz', 'urls.zstd', '- <urls',
    '<urls', '<urls.xz', 'urls urls.gzip')
{
    my $n = 1000 * (() = $input =~ /urls/g);

    is(`$urlstore normalize $input | sort -u | wc -l` . $?, "1000\n0",
        "normalize $input");
    is(`$urlstore dedup -q $input | wc -l`, "1000\n", "dedup $input");
    like(`$urlstore import in $input 2>&1`, qr/ $n lines: .* 0 refused/,
        "import $input");
    system('rm', '-r', 'in');
}

for my $command ('normalize', 'import in') {
    my ($out, $err, $code) = run("$command nothing urls");

    is($code, 2, "$command: a file that is not there");
    like($err, qr/nothing: open: No such file/, '... is named');
}

spew('some', "http://a.test/\nftp://b.test/\n" . 'x' x (2 << 20) . "\n"
    . "http://c.test/\n");

is((run('normalize some'))[0], "http://a.test/\n!scheme\n!length\n"
    . "http://c.test/\n", 'a long line is one line');
like(`$urlstore import in some 2>&1`, qr/^urlstore:\ refused\ \(scheme\):
    \ ftp:\/\/b\.test\/\nurlstore:\ refused\ \(length\):\ x{200}\n
    urlstore:\ 4\ lines:\ 2\ new,\ 0\ seen,\ 2\ refused$/x,
    'import prints and counts what it refuses');
is($? >> 8, 1, '... and returns 1');
spew('many', "x\n" x 11);
is(() = `$urlstore import in many 2>&1` =~ /^urlstore: refused/mg, 10,
    '... of many, the first ones');

# stopped, it keeps what it has, and says so

{
    my $pid = open my $out, '-|', "timeout 20 yes http://d.test/ | "
        . "$urlstore import in2 - 2>&1; echo \$?";

    for (1 .. 100) {
        last if -e 'in2/lock' || -e 'in2/manifest';
        select undef, undef, undef, .05;
    }

    select undef, undef, undef, .2;
    kill 'INT', grep { slurp("/proc/$_/comm", 1) eq "urlstore\n" }
        split ' ', slurp("/proc/$pid/task/$pid/children");
    like(join('', <$out>), qr/interrupted;\ the\ same\ command\ continues;
        \ \d+\ lines:\ 1\ new.*\n130\n$/x, 'interrupted');
    like(`$urlstore verify in2`, qr/ 1 ids/, '... all is kept');
}

system('rm -rf in urls* some');


# input that cannot be read, output that cannot be written

my $lines = join '', map "http://a.test/$_\n", 1 .. 5000;

spew('lines', $lines);

my $import = `$urlstore import data <lines 2>&1`;
is($?, 0, 'a directory');

for my $command ('import data', 'normalize', 'hash', 'dedup')
{
    my $out = `$urlstore $command <. 2>&1 >/dev/null`;

    is($? >> 8, 2, "$command: an error of the input is reported");
    like($out, qr/^urlstore: standard input/m, 'and of which');
}

for my $command ('normalize <lines', 'hash <lines', 'dedup lines',
    'dump data', 'dump --sorted data', 'stat data',
    'verify data', 'seen data lines', 'get data 0', 'add data lines',
    'backup data copy', 'stat --help', '--help')
{
    my $out = `$urlstore $command 2>&1 >/dev/full`;

    is($? >> 8, 2, "$command: an error of the output is reported");
    like($out, qr/^urlstore: standard output could not be written: No space/m,
        'and which');

    system('rm', '-rf', 'copy');
    $out = `sh -c '$urlstore $command >&-' 2>&1`;

    is($? >> 8, 2, "$command: a closed output is reported");
    like($out, qr/^urlstore: standard output could not be written: Bad file/m,
        'and that it is closed');
    system('rm', '-rf', 'copy');
}

# what is printed to a closed stream is not written to a file of the store

is(system("sh -c '$urlstore import data lines 0<&- >&- 2>&-'"), 0,
    'without any stream');
is(-s "data/$_", 0, "data/$_ stays empty") for qw(lock readers);
is(system("$urlstore verify data >verified"), 0, 'the store is whole');


# what is no store is refused, and stays as it is

mkdir $_ for qw(none other);
spew('other/notes', "mine\n");

for my $dir (qw(none other)) {
    for my $command ("stat $dir", "verify $dir", "verify --fast $dir",
        "dump $dir", "dump --sorted $dir", "get $dir 0", "seen $dir lines")
    {
        my ($out, $err, $code) = run($command);

        is("$out$code$err", "2urlstore: \"$dir\": there is no store in it\n",
            $command);
    }
}

for my $command ('add other lines', 'import other lines') {
    my ($out, $err, $code) = run($command);

    is("$out$code", '2', $command);
    like($err, qr/^urlstore: "other": it holds "notes", which is no file of a/,
        'refused');
}

is(join(' ', glob('none/* other/*')), 'other/notes', 'nothing was made there');

for my $command ('add lines lines', 'import lines lines', 'add gone/x lines',
    'stat lines', 'dump gone')
{
    my ($dir) = (split ' ', $command)[1];
    my ($out, $err, $code) = run($command);

    is("$out$code", '2', "$command: $dir is no directory");
    is(() = $err =~ /\Q$dir/g, 1, 'which is named once');
}


# values that are none

for my $bad (['backup --rate 5x data copy', '--rate "5x" is not a size, such'],
    ['dump --sorted --memory -1m data', '--memory "-1m" is not a size, such'],
    ['dedup --memory 1k lines', '--memory "1k" is not a size of at least 1048'],
    ['dedup --filter inf,.1 lines', '--filter "inf,.1" is not N,RATE'],
    ['import --profile x data', 'unknown profile "x"; use crawler, crawler-'],
    ['import --www x data', 'unknown --www "x"; use first, keep or strip'],
    ['import --profile whatwg data lines', '"data": its data were stored with '
        . 'norm "crawler/1 www=first", not with "whatwg/1'],
    ['get data ""', '"" is not an id, a number of at most 19 digits'],
    ['add http://127.0.0.1:65616/ lines', '" has no port from 1 to 65535'])
{
    my ($command, $why) = @$bad;
    my ($out, $err, $code) = run($command);

    is("$out$code", '2', $command);
    like($err, qr/^urlstore: .*\Q$why/, 'says why');
}


# answered URLs that are no longer there are damage, for a dump too

my ($journal) = glob 'data/journal.*';

spew($journal, substr slurp($journal), 0, -3);
is(system("$urlstore dump data >dumped 2>err") >> 8, 1, 'a cut journal');
like(slurp('err'), qr/"data": LSN \d+ was answered, the journal ends at \d+$/,
    'is reported by a dump');
