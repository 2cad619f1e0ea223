#!/usr/bin/perl

# Snapshots while the service runs, and what a scrub finds; a directory of
# another format version; path= that comes, goes or moves at a reload.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep);

use UrlStore::Test;

my $lines = corpus('trackawesomelist_md', 6000);

my $t = UrlStore::Test->new(workers => 2, log => 'notice');
my $data = "$t->{dir}/data";

# a snapshot, the journal after it, and a start from both

$t->run(zone_conf('64m path=%%DIR%%/data sync=1s snapshot=16k scrub=200ms'));
ok($t->ready, 'ready');
is($t->add($lines, 0, 1000)->{status}, 200, 'added') for 1;
is($t->add($lines, 1000, 1000)->{status}, 200, 'added');
ok(wait_until(10, sub { glob("$data/snapshot.0*") }), 'a snapshot was taken');
is($t->add($lines, 2000, 200)->{status}, 200, 'more was added');

my $next = $t->get('/stats')->json->{next_id};
my $ids = join("\n", 0 .. $next - 1) . "\n";
my $urls = $t->post('/url', $ids, Accept => 'text/plain')->{body};

$t->kill_all;
$t->start;
ok($t->ready, 'started from snapshot and journal');
is($t->post('/url', $ids, Accept => 'text/plain')->{body}, $urls,
    'each id has its URL');
unlike($t->add($lines, 0, 2200)->{body}, qr/\tnew\t/, 'and each URL its id');
is($t->get('/stats')->json->{next_id}, $next, 'none is new');

# a scrub finds a bit that has changed, and the snapshot is written anew

my ($bad, $damaged) = ('', '');

$t->allow(qr/\[alert\].*snapshot\..* at offset \d+/);


# of the newest snapshot, once: one that was under way may take its place

sub damage
{
    my ($file) = reverse sort glob("$data/snapshot.0*");

    return if $file eq $damaged || !open my $fh, '+<:raw', $file;

    $damaged = $file;
    $bad = slurp($file);
    substr($bad, length($bad) / 2, 1) ^= "\x10";
    syswrite $fh, $bad;
    close $fh;
}

ok(wait_until(30, sub {
    return 1 if $t->error_log =~ /\[alert\].*snapshot\./;
    damage();
    return 0;
}), 'a scrub finds it');
ok(wait_until(10, sub {
    my ($now) = reverse sort glob("$data/snapshot.0*");
    return slurp($now, 1) ne $bad && !-e "$data/snapshot.tmp";
}), 'a new one takes its place');

# a reader keeps the files that it may read: the owner has time between two

my $command = "$UrlStore::Test::TOP/build/urlstore";

sub verified
{
    sleep 0.3;
    return `$command verify $data | tail -1` =~ /^ok/;
}

ok(wait_until(10, \&verified), 'the directory is whole');
ok(wait_until(10, sub {
    $t->get('/stats')->json->{scrubbed_bytes} > length $bad
}),
    '/stats reports what was read');
is($t->add($lines, 2200, 100)->{status}, 200, 'the service goes on');

# path= at a reload

$t->allow(qr/\[emerg\].*its "path" cannot change/);
ok(!$t->reload(zone_conf('64m')), 'it cannot go');
ok(!$t->reload(zone_conf('64m path=%%DIR%%/other')), 'nor move');
ok(!-e "$t->{dir}/other", 'nothing was made there');
is($t->add($lines, 2300, 100)->{status}, 200, 'the service goes on');
$t->conf(zone_conf('64m path=%%DIR%%/data sync=1s snapshot=16k scrub=200ms'));
ok($t->reload, 'as before');

ok($t->stop, 'stopped');

my $memory = UrlStore::Test->new(workers => 1)->run(zone_conf('64m'));
is($memory->post('/add', "$lines->[0]\n")->{status}, 200, 'in memory only');
$memory->allow(qr/\[emerg\].*its "path" cannot change/);
ok(!$memory->reload(zone_conf('64m path=%%DIR%%/data')), 'path= cannot come');
ok(!-e "$memory->{dir}/data/manifest", 'nothing was made');
is($memory->get('/url/0')->{status}, 200, 'the store is as it was');

# the snapshot is damaged, and the journal goes back to its beginning

my ($file) = reverse sort glob("$data/snapshot.0*");
ok(-e "$data/journal.0000000000000000", 'the journal has all');
$bad = slurp($file);
substr($bad, length($bad) / 2, 1) ^= "\x10";
open my $fh, '+<:raw', $file or die "$file: $!";
syswrite $fh, $bad;
close $fh;

my $copy = "$t->{dir}/copy";

is(`$command dump $data 2>/dev/null | cut -f1 | head -$next`, $ids,
    'dump has all of it');
like(`$command dump $data 2>&1 >/dev/null`, qr/the journal has all that it had/,
    '  and says why');
like(`$command verify $data 2>/dev/null`, qr/^DAMAGED .*\Qsnapshot/m,
    'verify names it');
like(`$command backup $data $copy 2>&1`, qr/the journal has all that it had/,
    'backup');
like(`$command verify $copy`, qr/^ok +good up to/m, '  is whole');

$t->start;
ok($t->ready, 'a start');
is($t->post('/url', $ids, Accept => 'text/plain')->{body}, $urls,
    '  has each URL');
like($t->error_log, qr/\[warn\].*has all that it had; a snapshot replaces it/,
    '  and says why');
ok(wait_until(10, sub {
    my ($now) = reverse sort glob("$data/snapshot.0*");
    return slurp($now, 1) ne $bad && !-e "$data/snapshot.tmp"
        && verified()
}), '  a new snapshot takes its place');
ok($t->stop, 'stopped');

# the zone's threads are its own, whatever other directives do with nginx's

my $few = UrlStore::Test->new(workers => 1,
    globals => 'thread_pool default threads=1;');
$few->run(zone_conf('64m path=%%DIR%%/data snapshot=16k', 'aio threads'));
ok($few->ready, 'nginx has one thread');
is($few->add($lines, 0, 2000)->{status}, 200, 'added');
ok(wait_until(10, sub { glob("$few->{dir}/data/snapshot.0*") }),
    'a snapshot does not wait for a sync that waits for its thread');
is($few->add($lines, 2000, 100)->{status}, 200, 'and adds go on');

# format versions: refused readably, nothing is touched

my $manifest = slurp("$data/manifest");
my $future = $manifest =~ s/^urlstore data \d+/urlstore data 99/r
    =~ s/^crc32c.*//mrs;
$future .= sprintf "crc32c %08x\n", crc32c(0, $future);
spew("$data/manifest", $future);

sub files
{
    return { map { $_ => slurp($_) }
        grep { !/(?:lock|readers)$/ } glob("$data/*") };
}

my $was = files();
$t->allow(qr/\[emerg\].*version/);
ok(!$t->_start, 'another version of the directory: not started');
like($t->error_log,
    qr/\[emerg\].*format version 99, this program reads versions up to \d/,
    'says why');
is_deeply(files(), $was, 'no file was touched');

spew("$data/manifest", $manifest);
my ($journal) = reverse sort glob("$data/journal.0*");
my $segment = slurp($journal);
my $other = $segment;
substr($other, 8, 1) = "\2";
substr($other, 60, 4) = pack 'V', crc32c(0, substr $other, 0, 60);
spew($journal, $other);
$was = files();
$t->start;
ok(wait_until(10, sub { $t->get('/health')->json->{status} eq 'damaged' }),
    'another version of a segment: read-only');
ok(wait_until(10, sub {
    $t->error_log =~ /\[emerg\].*journal\.\S+" has format version 2/ }),
    'says why');
is_deeply(files(), $was, 'no file was touched');
ok($t->stop, 'stopped');
is_deeply(files(), $was, 'nor at the end');

spew($journal, $segment);
$t->start;
ok($t->ready, 'the right one again');
is($t->post('/url', $ids, Accept => 'text/plain')->{body}, $urls,
    'each id has its URL');
