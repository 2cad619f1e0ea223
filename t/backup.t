#!/usr/bin/perl

# urlstore backup and urlstore restore: under load, beside a server that is
# killed, on full disks, of damaged directories; what a restored store never
# gives again; and the commands that docs/operations.md shows, as they stand.
#
# US_CYCLES: backups under load (3).

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep time);

use UrlStore::Test;
use UrlStore::Record;

our $urlstore = "$UrlStore::Test::TOP/build/urlstore";
my $cycles = $ENV{US_CYCLES} || 3;

my $t = UrlStore::Test->new(workers => 2);
my $dir = "$t->{dir}/data";
my $copies = "$t->{dir}/copies";

mkdir $copies;
$t->allow(qr/the master process is gone/,    # kill_all()
    qr/it is a backup, which is only read/);

sub conf
{
    my ($path, $options) = @_;

    $path //= '%%DIR%%/data';
    $options //= 'sync=100ms snapshot=64k';

    return zone_conf("64m path=$path $options");
}


# what a command printed, its errors too, and its exit code

sub run
{
    my ($command) = @_;

    my $out = `$command 2>&1 </dev/null`;

    return ($? >> 8, $out);
}


# the manifest's line of this name

sub manifest
{
    my ($path, $key) = @_;

    return slurp("$path/manifest") =~ /^$key (.*)$/m ? $1 : '';
}


# what the clients of a record have been answered so far: id => URL

sub answered
{
    my ($rec) = @_;
    my %url;

    for my $k (1 .. $rec->{clients}) {
        for my $line (split /^/, slurp($rec->_file($k), 1)) {
            my ($id, undef, $url) = split /\t/, $line;
            $url{$id} = $url =~ s/\n//r if $line =~ /\n\z/ && $id ne '-';
        }
    }

    return \%url;
}


# ids of these that the copy does not have with their URL

sub missing
{
    my ($path, $url) = @_;

    my %has = map { /^(\d+)\t(.*)$/ } split /\n/, `$urlstore dump $path`;

    return grep { ($has{$_} // '') ne $url->{$_} } keys %$url;
}


# --- under load -----------------------------------------------------------

$t->run(conf());
ok($t->ready(write => 1), 'ready');

my $rec = UrlStore::Record->new($t, batch => 50, pause => 0.02);
ok(wait_until(10, sub { glob("$dir/snapshot.*") }), 'with a snapshot');

my (@faults, $before);

for my $n (1 .. $cycles) {
    $before = answered($rec);

    my ($rc, $out) = run("$urlstore backup $dir $copies/$n");

    push @faults, "backup $n: $rc $out" if $rc || $out =~ /torn|lost/;
    push @faults, map { "$n has no $_" } missing("$copies/$n", $before);
    push @faults, "$n: $out"
        if (($rc, $out) = run("$urlstore verify $copies/$n"))[0];
    unlink "$copies/$n/readers";
}

is_deeply([ @faults[0 .. ($#faults > 5 ? 5 : $#faults)] ], [],
    "$cycles backups have all that was answered before");
is(manifest("$copies/1", 'state'), 'backup', 'and are called so');
is(join(' ', sort map { s{.*/}{}r =~ s/\.[0-9a-f]{16}$//r }
    glob("$copies/$cycles/*")), 'journal lock manifest snapshot',
    'the files of one');

# one that is killed has no name, and is no obstacle to the next

sub begun
{
    my ($out) = @_;

    my $rate = int((-s (glob("$dir/snapshot.*"))[-1]) / 1.2) + 1;
    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        exec "exec $urlstore backup --rate $rate $dir $out >$out.out 2>&1"
            or POSIX::_exit(127);
    }

    ok(wait_until(10, sub {
        grep { (readlink // '') =~ m{\.tmp/snapshot\.} }
            glob("/proc/$pid/fd/*");
    }), 'one begins');
    ok(!-e $out, '  which has no name yet');

    return $pid;
}


my $pid = begun("$copies/killed");

kill 'KILL', $pid;
waitpid $pid, 0;
ok(!-e "$copies/killed" && -e "$copies/killed.tmp", '  nor when it is killed');

# the files that it needs stay until it is done; then the server is killed

$before = answered($rec);
$pid = begun("$copies/killed");
kill 'STOP', $pid;

my $snapshot = manifest($dir, 'snapshot');
ok(wait_until(20, sub { manifest($dir, 'snapshot') ne $snapshot }),
    'the server takes another snapshot');
sleep 0.2;
ok(-e "$dir/snapshot.$snapshot", '  and keeps the one before');

my ($rc, $out) = run("$urlstore backup $dir $copies/killed");
is($rc, 2, '  a second one to there is refused');
like($out, qr{^urlstore: "\S+/killed": another command is making it$},
    '  readably');

$t->kill_all;
kill 'CONT', $pid;
waitpid $pid, 0;
is($? >> 8, 0, 'and is done though the server was killed')
    or diag(slurp("$copies/killed.out"));
is_deeply([ missing("$copies/killed", $before) ], [], '  with all');
ok(!-e "$copies/killed.tmp", '  and nothing is left over');

# the old server goes on, and gives ids that the backup does not have

my ($ids) = slurp("$copies/killed.out") =~ /: (\d+) ids/;
my $epoch = manifest($dir, 'epoch');

$t->start;
ok($t->ready(write => 1), 'started again');
wait_until(10, sub { exists answered($rec)->{ $ids + 100 } });
$rec->stop;
my $after = answered($rec);
my $etag = $t->get("/url/$ids")->{headers}{etag};
ok($t->stop, 'stopped');

# restored beside it

($rc, $out) = run("$urlstore restore $copies/killed $t->{dir}/again");
is($rc, 0, 'restored');
like($out, qr/^restored "\S+": $ids ids .*, epoch \d+ after $epoch$/,
    '  which says what a client sees');
is(manifest("$t->{dir}/again", 'uuid'), manifest($dir, 'uuid'),
    'the same uuid');

my $new = manifest("$t->{dir}/again", 'epoch');
cmp_ok($new, '>', $epoch, '  in a new epoch');
cmp_ok($new, '<', 2 ** 53, '  that JSON has exactly');

$t->conf(conf('%%DIR%%/again'));
$t->start;
ok($t->ready(write => 1), 'started');

is($t->get('/health')->json->{epoch}, $new, '/health has the epoch');
is($t->get('/stats')->json->{next_id}, $ids, 'and /stats the next id');

my @wrong = grep {
    ($t->get("/url/$_")->{body} // '') ne "$before->{$_}\n"
} (sort { $a <=> $b } keys %$before)[0 .. 99, -100 .. -1];

is_deeply(\@wrong, [], 'what was answered is there');

my $r = $t->post('/add?summary=1', join '', map { "http://new.test/$_\n" }
    1 .. 100);
like(substr($r->{body}, 0, 80), qr/^$ids\tnew\t/,
    'an id that the other has given, too');
like($r->{body}, qr/ epoch=$new$/m, '  in the new epoch');
isnt($t->get("/url/$ids")->{headers}{etag}, $etag, '  with another ETag');
isnt($t->get("/url/$ids")->{body}, "$after->{$ids}\n", '  to another URL');
$t->kill_all;
is(manifest("$t->{dir}/again", 'epoch'), $new, 'the epoch stays');

# a second one of the same backup has another epoch

($rc, $out) = run("$urlstore restore $copies/killed $t->{dir}/third");
is($rc, 0, 'restored once more');
my $third = manifest("$t->{dir}/third", 'epoch');
ok($third != $new && $third > $epoch, '  in an epoch of its own');

# in place: a directory that was put back by other means

system("cp -a $t->{dir}/third $t->{dir}/cp") == 0 or die;
($rc, $out) = run("$urlstore restore $t->{dir}/cp");
is($rc, 0, 'in place');
my $cp = manifest("$t->{dir}/cp", 'epoch');
ok($cp != $third && $cp > $epoch, '  in an epoch of its own');
is(system("$urlstore verify $t->{dir}/cp >/dev/null"), 0, '  and whole');


# a segment that holds nothing yet: the one before ends where the copy does

SKIP: {
    skip('the sanitizer wants to be loaded first', 1) if $ENV{US_ASAN};

    my $u = UrlStore::Test->new(disk => 1);
    my $path = $u->dir . '/data';

    $u->allow(qr/fsync of the directory failed/,
        qr/the master process is gone/);
    $u->run(conf(undef, 'sync=100ms erase_within=1s'));
    ok($u->ready(write => 1), 'another server');
    $u->post('/add', join '', map { "http://a.test/$_\n" } 1 .. 100);
    is(scalar(() = glob "$path/journal.*"), 1, '  has a segment');

    # when the bytes of an erased URL are gone, the next one is begun

    $u->disk('directory 5');
    $u->post('/erase?reason=test', "http://a.test/7\n",
        'Content-Type' => 'text/plain');
    ok(wait_until(10, sub { $u->error_log =~ /fsync of the directory/ }),
        '  begins another one');
    is(join(' ', map { -s } grep { !/0{16}$/ } glob "$path/journal.*"), 64,
        '  and writes nothing to it');

    my ($rc, $out) = run("$urlstore backup $path $copies/begun");
    is($rc, 0, '  a backup') or diag($out);
    is(system("$urlstore verify $copies/begun >/dev/null"), 0, '  is whole');
    is(scalar(() = `$urlstore dump $copies/begun` =~ /^\d+\t/mg), 99,
        '  has all');

    $u->disk('');
    $u->kill_all;
    ($rc, $out) = run("$urlstore backup $path $copies/begun2");
    is($rc, 0, '  also when the server was killed') or diag($out);
}


# --- refused --------------------------------------------------------------

sub refused
{
    my ($command, $code, $re, $what) = @_;

    my ($rc, $out) = run("$urlstore $command");

    is($rc, $code, "$what: refused");
    like($out, $re, '  readably');
}


my $one = "$copies/1";
my $to = "$t->{dir}/to";

mkdir $to;
spew("$to/tls.key", 'secret');
refused("restore $one $to", 2, qr{"\Q$to\E": it is not empty}, 'a full target');
refused("backup $dir $to", 2, qr{"\Q$to\E": it is not empty}, 'of a backup');
refused("restore $one $to/tls.key", 2, qr/is there, and is no directory/,
    'a file');
refused("backup $dir $dir/copy", 2, qr/lies in the directory to be copied/,
    'a target in the source');
refused("backup $dir $to/", 2, qr/it is not empty/, 'with a slash');
refused("backup $dir .", 2, qr/name a directory that is to be made/, '"."');
refused("backup $dir $t->{dir}/no/no", 2,
    qr/its parent directory could not be opened: No such file/, 'no parent');
refused("backup $to $copies/x", 2, qr/no data directory, and no backup that/,
    'another directory');
refused("backup $t->{dir}/no $copies/x", 2, qr/no": No such file/, 'none');
refused("import $one", 2, qr/it is a backup, which is only read/, 'an import');

rename "$to/tls.key", "$t->{dir}/tls.key";
mkdir "$to.tmp";
spew("$to.tmp/tls.key", 'secret');
refused("backup $dir $to", 2, qr/to\.tmp" holds "tls\.key", which is no file/,
    'a place that is not ours');
is(slurp("$to.tmp/tls.key"), 'secret', '  and left as it is');
unlink "$to.tmp/tls.key";

# a server does not write to a backup; it may look things up

($rc, $out) = $t->check(conf($one));
is($rc, 1, 'nginx -t refuses a backup');
like($out, qr/\[emerg\].*copies\/1": it is a backup, .*urlstore restore/,
    '  readably');
($rc, $out) = $t->check(conf($one, 'mode=lookup'));
is($rc, 0, '  but with mode=lookup') or diag($out);

# an empty directory gets the copy, and keeps its mode

spew("$to.tmp/journal.0000000000000000", 'of a killed one');
chmod 0750, $to;
($rc, $out) = run("$urlstore restore $one $to");
is($rc, 0, 'an empty directory, after a killed command') or diag($out);
is((stat $to)[2] & 07777, 0750, '  keeps its mode');
is(system("$urlstore verify $to >/dev/null"), 0, '  and is whole');
ok(!-e "$to.tmp", '  nothing is left over');

# one that a server owns is not changed in place

$t->conf(conf());
$t->start;
ok($t->ready(write => 1), 'a server');
refused("restore $dir", 2, qr/it has an owner; stop the service first/,
    'in place, beside it');

# damaged: by name of file and offset

sub damaged
{
    my ($file, $data, $re, $what) = @_;

    my $path = "$copies/$cycles/$file";
    my $whole = slurp($path);

    if (defined $data) { spew($path, $data) } else { unlink $path }

    refused("restore $copies/$cycles $t->{dir}/never", 1, $re, $what);
    ok(!-e "$t->{dir}/never" && !-e "$t->{dir}/never.tmp", '  nothing is made');
    spew($path, $whole);
}


sub flipped
{
    my ($data, $at) = @_;

    substr($data, $at, 1) ^= "\x10";

    return $data;
}


($snapshot, my $journal) = map { s{.*/}{}r }
    map { (glob("$copies/$cycles/$_.*"))[-1] } qw(snapshot journal);
my $whole = slurp("$copies/$cycles/$journal");
my $image = slurp("$copies/$cycles/$snapshot");
my $where = qr/"\Q$journal\E".* offset/;

# where the last block begins

my ($block, $next) = (64, 64);

while ($next < length $whole) {
    $block = $next;
    $next += 48 + unpack 'V', substr $whole, $block + 4, 4;
}

damaged($journal, substr($whole, 0, -1), $where, 'cut by a byte');
damaged($journal, substr($whole, 0, $block), qr/$where $block, LSN/,
    'cut after a block');
damaged($journal, substr($whole, 0, $block + 7), qr/$where $block/,
    'cut in a block');
damaged($journal, substr($whole, 0, 9), $where, 'cut in the header');
damaged($journal, '', qr/"\Q$journal\E"/, 'empty');
damaged($journal, undef, qr/LSN/, 'without its journal');
damaged($journal, flipped($whole, $block + 60), qr/$where $block/,
    'a bit of the journal');
damaged($journal, flipped($whole, length($whole) - 1), $where, 'its last one');
damaged($journal, "$whole\0", qr/$where @{[ length $whole ]}/, 'a byte more');
damaged($snapshot, flipped($image, 200), qr/"\Q$snapshot\E" at offset 64/,
    'a bit of the snapshot');
damaged($snapshot, substr($image, 0, -48), qr/"\Q$snapshot\E" is cut off at/,
    'a snapshot without its footer');
damaged($snapshot, undef, qr/"\Q$snapshot\E".*No such file/, 'without it');
damaged('manifest', flipped(slurp("$copies/$cycles/manifest"), 30),
    qr/"manifest" is damaged/, 'a bit of the manifest');

my $n = 0;

for my $at (map { int rand length $whole } 1 .. $cycles) {
    spew("$copies/$cycles/$journal", flipped($whole, $at));
    $n += (run("$urlstore restore $copies/$cycles $t->{dir}/never"))[0] == 1;
    spew("$copies/$cycles/$journal", substr $whole, 0, $at);
    $n += (run("$urlstore restore $copies/$cycles $t->{dir}/never"))[0] == 1;
}

spew("$copies/$cycles/$journal", $whole);
is($n, 2 * $cycles, 'any bit, cut anywhere');

# a source that is damaged

my ($rotten) = "$t->{dir}/rotten";
system("cp -a $t->{dir}/third $rotten") == 0 or die;
my ($file) = glob("$rotten/journal.*");
spew($file, flipped(slurp($file), 100));
my $name = $file =~ s{.*/}{}r;
refused("backup $rotten $copies/rotten", 1, qr/"\Q$name\E".* offset/,
    'a damaged source');

# one that was killed while it wrote: what was not answered is left out

system("cp -a $t->{dir}/again $t->{dir}/torn") == 0 or die;
$file = (glob("$t->{dir}/torn/journal.*"))[-1];
spew($file, slurp($file) . 'USBK' . 'x' x 100);
($rc, $out) = run("$urlstore backup $t->{dir}/torn $copies/torn");
is($rc, 0, 'a torn end') or diag($out);
is(system("$urlstore verify $copies/torn >/dev/null"), 0, '  is left out');
spew($file, substr slurp($file), 0, -200);
($rc, $out) = run("$urlstore backup $t->{dir}/torn $copies/less");
is($rc, 0, 'an end that was lost') or diag($out);
like($out, qr/torn end was left out: \d+ bytes, \d+ ids that had been/,
    '  is said');

# a full disk: nothing is left over

SKIP: {
    skip('the sanitizer wants to be loaded first', 1) if $ENV{US_ASAN};

    my $shim = $UrlStore::Test::FAULT_DISK;
    die "no $shim: run make test-programs\n" if !-e $shim;

    for my $fault ([ 'write 28', qr/write to the copy of "\w+\.\w+" failed/ ],
        [ 'sync 28', qr/fsync of the copy of/ ])
    {
        my ($does, $re) = @$fault;

        spew("$t->{dir}/full", $does);

        local $ENV{LD_PRELOAD} = $shim;
        local $ENV{US_DISK} = "$t->{dir}/full";

        refused("backup $dir $copies/full", 2,
            qr/^urlstore: "\Q$copies\E\/full": $re.*No space left/,
            "a full disk ($does)");
        refused("restore $one $copies/full", 2, qr/$re.*No space left/,
            '  of a restore');
        ok(!-e "$copies/full" && !-e "$copies/full.tmp", '  nothing is left');
    }

    ($rc, $out) = run("$urlstore backup $dir $copies/full");
    is($rc, 0, 'and with room again, it is made') or diag($out);
}

# as a user who may not

SKIP: {
    skip('only root can be somebody else', 1) if $> != 0;

    my $nobody = (getpwnam('nobody'))[2];

    system("cp $urlstore $t->{dir}/urlstore") == 0 or die;
    chmod 0755, $t->{dir};
    mkdir "$t->{dir}/public";
    chmod 0777, "$t->{dir}/public";
    chmod 0700, $copies, $one;

    local $urlstore = "setpriv --reuid=$nobody --clear-groups "
        . "$t->{dir}/urlstore";

    refused("restore $one $t->{dir}/public/a", 2,
        qr{copies/1": Permission denied}, 'unreadable');
    chmod 0755, $copies, $one;
    refused("restore $one $t->{dir}/public/a", 2,
        qr{copies/1": "manifest" could not be opened \(13: Permission denied\)},
        'unreadable files');
    refused("backup $dir $copies/b", 2,
        qr{b": the directory could not be made: Permission denied},
        'an unwritable target');
    ok(!-e "$t->{dir}/public/a" && !-e "$t->{dir}/public/a.tmp",
        'nothing is left');
}


# the folder above a store

mkdir "$t->{dir}/above";
is((run("$urlstore import $t->{dir}/above/urls"))[0], 0, 'a folder of a store');
refused("$_ $t->{dir}/above" . (/backup/ ? " $copies/above" : ''), 2,
    qr{no store in it; did you mean "\Q$t->{dir}\E/above/urls"\?}, "$_ of it")
    for 'backup', 'verify', 'stat', 'dump', 'restore';


# --- docs/operations.md ---------------------------------------------------

my ($section) = slurp("$UrlStore::Test::TOP/docs/operations.md")
    =~ /^## Backup and restore\n(.*?)^## /ms;
my @lines = $section =~ /^    (\S.*?)(?: +#.*)?$/mg;

cmp_ok(scalar @lines, '>', 5, 'docs/operations.md shows commands');

mkdir "$t->{dir}/backup";
$before = { map { /^(\d+)\t(.*)$/ } split /\n/, $t->get('/urls')->{body} };
cmp_ok(scalar keys %$before, '>', 100, 'a service with URLs');

local $ENV{PATH} = "$UrlStore::Test::TOP/build:$ENV{PATH}";

for my $line (@lines) {
    if ($line eq 'systemctl stop nginx') {
        ok($t->stop, $line);

    } elsif ($line eq 'systemctl start nginx') {
        $t->start;
        ok($t->ready(write => 1), $line);

    } else {
        my $command = $line =~ s{/var/lib/urlstore/urls}{$dir}gr
            =~ s{/backup/}{$t->{dir}/backup/}gr
            =~ s{localhost:8080}{'127.0.0.1:' . $t->port}ger;

        my ($rc, $out) = run("{ $command; }");
        is($rc, 0, $line) or diag($out);
    }
}

is_deeply({ map { /^(\d+)\t(.*)$/ } split /\n/, $t->get('/urls')->{body} },
    $before, 'the store is back');
