#!/usr/bin/perl

# The directory of path=: what is refused, by a start and by nginx -t alike, and
# what root gives to the workers: nothing that is not a file of the store.

use strict;
use warnings;

use lib 't/lib';

use UrlStore::Test;

my $t = UrlStore::Test->new(workers => 1);
my $dir = "$t->{dir}/data";
my $urlstore = "$UrlStore::Test::TOP/build/urlstore";

sub conf
{
    my ($options, $path) = @_;

    $path //= '%%DIR%%/data';

    return zone_conf("16m path=$path $options");
}


# both refuse, and for this reason

sub refused
{
    my ($conf, $re, $what) = @_;

    my ($rc, $out) = $t->check($conf);
    is($rc, 1, "nginx -t refuses $what");
    like($out, $re, '  readably');

    unlink "$t->{dir}/error.log", "$t->{dir}/stderr";
    $t->conf($conf);
    ok(!$t->_start, '  so does a start');
    like($t->error_log . slurp("$t->{dir}/stderr", 1), $re, '  for the same');
    unlink "$t->{dir}/error.log", "$t->{dir}/stderr";
}


sub owner { return (lstat $_[0])[4] }


# nothing is made by a test

my ($rc, $out) = $t->check(conf(''));
is($rc, 0, 'a directory that is to be made');
ok(!-e $dir, '  is not made by nginx -t');

refused(conf('', '%%DIR%%/no/data'), qr/cannot be made|mkdir\(\) .*failed/,
    'a directory in no directory');

# other files: the directory is somebody else's

mkdir $dir;
chmod 0777, $dir;
spew("$dir/tls.key", 'secret');
refused(conf(''), qr/\[emerg\].*data": it holds "tls\.key", which is no file/,
    'a directory with another file');
ok(!-e "$dir/lock", 'nothing was made there');
unlink "$dir/tls.key";

mkdir "$dir/journal.0000000000000000";
refused(conf(''), qr/it holds "journal\.0000000000000000"/,
    'a directory with our name');
rmdir "$dir/journal.0000000000000000";

spew("$t->{dir}/elsewhere", 'precious');
symlink "$t->{dir}/elsewhere", "$dir/manifest";
refused(conf(''), qr/it holds "manifest"/, 'a link with our name');
unlink "$dir/manifest";

spew("$dir/journal.00000000000000zz", '');
refused(conf(''), qr/it holds "journal\.00000000000000zz"/, 'a name like ours');
unlink "$dir/journal.00000000000000zz";

# what a file system or a killed process leaves

mkdir "$dir/lost+found";
spew("$dir/snapshot.tmp", 'half of one');
spew("$dir/.nfs000001", '');

$t->conf(conf('marks=a,b'));
$t->start;
ok($t->ready(write => 1), 'leftovers are no obstacle');
is($t->post('/add', "http://a.example/\n")->{status}, 200, 'added');
like($t->post('/mark/b', "0\n")->{body}, qr/^0\tset\t/, 'marked');
ok($t->stop, 'stopped');

# settings that the data cannot follow

refused(conf('marks=a,b profile=whatwg'),
    qr/stored with norm "crawler.*not with "whatwg/,
    'another profile');
refused(conf('marks=a,b schemes=first'), qr/stored with schemes "keep"/,
    'other schemes');
refused(conf('marks=a'), qr/stored with marks "a,b"/, 'a mark less');
refused(conf('marks=b,a'), qr/stored with marks "a,b"/, 'exchanged marks');

($rc, $out) = $t->check(conf('marks=a,b,c'));
is($rc, 0, 'one more mark');

# a mark more, set, and its absence refused; what was marked is there

$t->conf(conf('marks=a,b,c'));
$t->start;
ok($t->ready(write => 1), 'started with one more');
like(slurp("$dir/manifest"), qr/^store marks a,b,c$/m, 'the manifest has it');
like($t->post('/mark/c', "0\n")->{body}, qr/^0\tset\t/, 'marked');
$t->kill_all;

is(`$urlstore verify $dir | tail -1` =~ /^ok/ ? 'ok' : '', 'ok', 'verified');
is(`$urlstore dump $dir`, "0\thttp://a.example/\n", 'dumped');
refused(conf('marks=a,b'), qr/stored with marks "a,b,c"/, 'without it');

$t->conf(conf('marks=a,b,c,d'));
$t->start;
ok($t->ready, 'and another one');
is($t->get('/urls?mark=c')->{body}, "0\thttp://a.example/\n", 'all is there');
is($t->get('/urls?mark=b')->{body}, "0\thttp://a.example/\n", '  all of it');
is($t->get('/urls?mark=d')->{body}, '', '  and no more');
ok($t->stop, 'stopped');

# the memory of a large zone is not touched by a test

sub touched
{
    my ($conf) = @_;

    $t->conf($conf);
    my @cmd = $t->_command('-t');
    $cmd[$_] = "$t->{dir}/check.log"
        for grep { $cmd[$_ - 1] eq '-e' } 1 .. $#cmd;

    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        open STDERR, '>', '/dev/null';
        exec @cmd or POSIX::_exit(127);
    }

    my $max = 0;

    while (waitpid($pid, POSIX::WNOHANG) == 0) {
        $max = $1 if slurp("/proc/$pid/status", 1) =~ /^VmHWM:\s+(\d+)/m
            && $1 > $max;
    }

    return $? == 0 ? $max : -1;
}

SKIP: {
    skip('the sanitizer has memory of its own', 2) if $ENV{US_ASAN};

    my $kb = touched(conf('marks=a,b,c,d') . 'urlstore_zone v 1g; '
        . 'urlstore_filter f 1g capacity=500m error=0.001;');
    cmp_ok($kb, '>', 0, 'nginx -t with 2 GB of zones');
    cmp_ok($kb, '<', 100_000, "  takes $kb KB");
}

# as root: whose the files are

SKIP: {
    skip('only root can give anything away', 1) if $> != 0;

    my $nobody = (getpwnam('nobody'))[2];

    # one that nginx has made

    $t->conf(conf('', '%%DIR%%/made'));
    $t->start;
    ok($t->ready(write => 1), 'a directory that nginx has made');
    ok($t->stop, 'stopped');
    is(owner($_), $nobody, "  $_ is the workers'")
        for "$t->{dir}/made", glob("$t->{dir}/made/*");

    # one that root has: it stays root's

    mkdir "$t->{dir}/root";
    chmod 0755, "$t->{dir}/root";            # whatever the umask is
    refused(conf('', '%%DIR%%/root'), qr/it belongs to user 0, and user \d+ of/,
        "an empty directory of root's");
    is(owner("$t->{dir}/root"), 0, "  it is still root's");
    ok(!glob("$t->{dir}/root/*"), '  and empty');

    chown $nobody, -1, "$t->{dir}/root";
    $t->conf(conf('', '%%DIR%%/root'));
    $t->start;
    ok($t->ready(write => 1), 'given to the workers: used');
    ok($t->stop, 'stopped');

    # below one that the workers may not enter, whatever lies there: no denial

    mkdir "$t->{dir}/closed", 0700;
    $t->conf(conf('', '%%DIR%%/closed/data'));
    $t->start;
    my $closed = qr/may not enter the directory, or one above it/;
    ok(wait_until(10, sub { $t->get('/health')->{body} =~ $closed }),
        "below a directory that is root's alone");
    is($t->get('/seen?url=http://a.example/')->{status}, 503,
        '  nothing is denied');
    chmod 0711, "$t->{dir}/closed";
    ok($t->ready(write => 1), '  until the workers may enter it');
    ok($t->stop, 'stopped');

    # one that root has imported into

    mkdir "$t->{dir}/import";
    open my $fh, '|-', "$urlstore import $t->{dir}/import 2>/dev/null";
    print $fh "http://b.example/\n";
    close $fh;
    is(owner("$t->{dir}/import/manifest"), 0, "imported: root's");

    spew("$t->{dir}/outside", 'precious');
    link "$t->{dir}/outside", "$t->{dir}/import/snapshot.tmp";
    unlink "$t->{dir}/error.log", "$t->{dir}/stderr";
    $t->conf(conf('', '%%DIR%%/import'));
    ok(!$t->_start, 'a file with another name outside is not given away');
    like($t->error_log . slurp("$t->{dir}/stderr", 1),
        qr/"snapshot\.tmp" belongs to another user/, '  readably');
    is(owner("$t->{dir}/outside"), 0, "  it is still root's");
    unlink "$t->{dir}/import/snapshot.tmp", "$t->{dir}/error.log",
        "$t->{dir}/stderr";

    $t->start;
    ok($t->ready(write => 1), 'imported by root: used');
    is($t->get('/url/0')->{body}, "http://b.example/\n", 'with its URL');
    ok($t->stop, 'stopped');
    is(owner($_), $nobody, "  $_ is the workers'")
        for "$t->{dir}/import", glob("$t->{dir}/import/*");
}
