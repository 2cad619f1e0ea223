#!/usr/bin/perl

# replicate= with path=: a directory that has what the log has confirmed.  A
# start reads only the rest from the log.  What the disk does delays, fails and
# confirms no answer.
#
# Kills at each step and damage of each byte: t/unit/copier.c.  Under load:
# t/cluster_failover.t.

use strict;
use warnings;

use lib 't/lib';

use Time::HiRes qw(time);

use UrlStore::Nodes;
use UrlStore::Postgres;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL is installed: make deps')
    if !UrlStore::Postgres::bin();

need_fault_disk();

my $top = $UrlStore::Test::TOP;
my @text = ('Content-Type' => 'text/plain');
my $pg = UrlStore::Postgres->new->start;
my $t = UrlStore::Test->new(log => 'notice', disk => 1, globals =>
    "load_module $UrlStore::Test::POSTGRES;");
my $dir = $t->dir . '/cache';
my $marks = 'a';
my $at = 0;
my $seen = 0;                        # of the error log

spew($t->dir . '/log', $pg->conninfo);
$t->allow_kills;
$t->allow(qr/the log does not confirm/);


sub text
{
    my ($options) = @_;

    return "urlstore_cluster c %%DIR%%/map.json;\n" . zone_conf("16m cluster=c"
        . ' shard=0 node=n0 lease=' . longer() . 's replicas=0'
        . " marks=$marks replicate=postgres:\@%%DIR%%/log $options")
        =~ s{location / }{location = /cluster { urlstore_cluster_admin c; }
    location / }r;
}


sub stats { return $t->get('/stats')->json // {} }


# the primary has its lease, and so many URLs

sub comes
{
    my ($what) = @_;

    ok(wait_until(20, sub {
        my $s = stats();
        return ($s->{state} // '') eq 'ready' && $s->{urls} == $at
    }), $what) or die $t->error_log;
}


sub gets_map
{
    my ($what) = @_;

    UrlStore::Nodes::map_of($t);
    ok(wait_until(20, sub { stats()->{map_version} }), "$what: it has a map");
}


# seconds: a 503 is tried again for so long, as by any client, while another
# process connects to the log, which may outlast the lease

sub add
{
    my ($n, $seconds) = @_;

    my $r;
    my $urls = join '', map { $at++; 'http://h' . $at % 50 . ".test/$at\n" }
        1 .. $n;

    wait_until($seconds // 0, sub {
        $r = $t->post('/add', $urls, @text);
        return $r->{status} != 503;
    });
    is("$r->{status} $r->{body}", 200, "$n URLs") if $r->{status} != 200;
}


# all URLs by their ids

sub same
{
    my ($what) = @_;

    my $got = $t->post('/url', join('', map { "$_\n" } 0 .. $at - 1), @text,
        Accept => 'text/plain')->{body};
    my $want = join '', map { $_ - 1 . "\thttp://h" . $_ % 50
        . ".test/$_\n" } 1 .. $at;

    ok($got eq $want, "$what: all ids are the same");
}


# the directory has all that is confirmed

sub level
{
    my ($what) = @_;

    ok(wait_until(20, sub {
        my $s = stats();
        return $s->{cached} && $s->{cached} == $s->{confirmed}
    }), "$what: the directory has all") or die $t->error_log;
}


# what the error log has since the last call

sub said
{
    my $log = $t->error_log;
    my $new = substr $log, $seen;

    $seen = length $log;

    return $new;
}


# a start after kill -9, which reads so many bytes of the log, at most

sub restart
{
    my ($what, $most) = @_;

    $t->kill_all;
    said();
    $t->start;
    comes($what);
    same('  it');

    cmp_ok(stats()->{log_read_bytes}, '<=', $most,
        '  the rest is read from the log');
}


# --- a start, and what it reads

$t->run(text("path=$dir snapshot=32k"));
gets_map('a node with a directory');
comes('  it is the primary');
level('  it');                       # so that 6,000 URLs exceed snapshot=
add(3000);
level('it');
is(stats()->{cache_restarts}, 1, '  it began');
like(slurp("$dir/manifest"), qr/^state replica\n.*^log \w+ 1 \w+$/ms,
    '  its manifest has a place of the log');
restart('killed', 200);
add(3000);
level('it goes on');
ok(wait_until(10, sub { stats()->{snapshots} }), '  with a snapshot');
restart('killed, with a snapshot', 200);
is(stats()->{cache_restarts}, 0, '  it was not begun anew');

ok($t->reload, 'a reload');
add(20, 20);
level('it');
ok(wait_until(5, sub { $t->kill_worker }), 'a worker is killed');
add(20, 20);
level('it');
is(stats()->{cache_restarts}, 0, '  it was not begun anew');
is($t->get('/log')->{status}, 404, 'GET /log: it has no journal of its own');


# --- its end is torn

$t->stop;
like(qx($top/build/urlstore dump $dir), qr{^0\thttp://h1\.test/1\n},
    'urlstore dump');
like(qx($top/build/urlstore verify $dir), qr/$at ids/, 'urlstore verify');
is($? >> 8, 0, '  finds it whole');
like(qx(echo http://b.test/ | $top/build/urlstore add $dir 2>&1),
    qr/only read/, 'urlstore add refuses it');

my ($last) = reverse sort glob "$dir/journal.*";

truncate $last, (-s $last) - 7 or die "$last: $!";
$marks = 'a,b';
$t->conf(text("path=$dir snapshot=32k"));
$t->start;
comes('a torn end, and another mark');
same('  it');
is($t->post('/mark/b', "0\n", @text)->{status}, 200, '  which is set');
is(stats()->{cache_restarts}, 0, '  it is cut');
level('  it');


# --- the log has lost what the directory has

my $short = $pg->sql('SELECT max(lsn) FROM urlstore_log');

add(10);
level('10 URLs');
$t->kill_all;
$pg->sql("DELETE FROM urlstore_log WHERE lsn > $short; "
    . "UPDATE urlstore_shard SET acked = least(acked, $short)");
$at -= 10;
said();
$t->allow(qr/the log of shard 0 has lost|what was in the path is kept/);
$t->start;
ok(wait_until(20, sub { (stats()->{state} // '') eq 'standby'
    && stats()->{urls} == $at }), 'a log that was restored to an earlier time');
sleep 2;
is(stats()->{state}, 'standby', '  the node does not take over by itself');

my $said = '';

wait_until(20, sub { ($said .= said()) =~ /is kept in/ });
like($said, qr/\[warn\].*all is read from the log: the log has no/,
    '  it is logged');
is(() = $said =~ /the path is not used/g, 1, '  once');

my ($kept) = $said =~ /\[alert\].*is kept in "(\S+)"/;
my @kept = split /\n/, `$UrlStore::Test::TOP/build/urlstore dump $kept`;

is(scalar @kept, $at + 10, '  the directory is kept, with all that it has');
is($t->post('/cluster?forget', '')->{status}, 200, '  the rest is given up');
comes('  it');
is(stats()->{epoch}, 2, '  with another epoch');
same('  it');
level('  it');


# --- a disk that is full, or hangs

$t->disk('write 28');
add(500);
ok(wait_until(10, sub { stats()->{cache_off} }), 'a full disk is reported');
same('  it');
add(500);
same('  it goes on');
cmp_ok(stats()->{cached}, '<', stats()->{confirmed}, '  without the directory');
is(() = said() =~ /the path is not written/g, 1, '  it is logged once');
$t->disk('');
level('there is room again');
ok(!stats()->{cache_off}, '  that is reported');

$t->disk('stall 1');

for (1 .. 20) {
    my $start = time;

    add(100);
    cmp_ok(time - $start, '<', 1, 'a disk that hangs delays nothing')
        if time - $start >= 1;
}

same('a disk that hangs');
cmp_ok(stats()->{cached}, '<', stats()->{confirmed},
    '  the directory has not all');
ok(!stats()->{stalled}, '  nothing is stalled');
$t->disk('');
level('it is back');
restart('what was written is good', 200);


# --- directories, and logs, that are others'

$t->stop;

my $other = UrlStore::Test->new;

$other->run(zone_conf("16m path=$dir-2"));
ok($other->ready(write => 1), 'a zone that is not replicated');
$other->post('/add', "http://a.test/\n", @text);
$other->stop;
$_->allow(qr/it has a store that is no replica's copy/,
    qr/a replica's copy of another server's store/, qr/is used by "/)
    for $t, $other;

my ($rc, $out) = $t->check(text("path=$dir-2"));

isnt($rc, 0, 'its directory is refused');
like($out, qr/\[emerg\].*it has a store that is no replica's copy, .*an empty/,
    '  says why');
like(qx($top/build/urlstore stat $dir-2 2>&1), qr/\b1\b/, '  it is as it was');
($rc, $out) = $other->check(zone_conf("16m path=$dir"));
isnt($rc, 0, 'the directory of a replicated zone is refused without the log');
like($out, qr/a replica's copy of another server's store/, '  says why');
($rc, $out) = $t->check(text("path=$dir; urlstore_zone v 16m path=$dir/"));
isnt($rc, 0, 'two zones have no directory in common');
like($out, qr/is used by "/, '  says why');

$pg->sql('TRUNCATE urlstore_shard, urlstore_log, urlstore_base');
unlink $t->dir . '/map.json';
$at = 0;
said();
$t->start;
comes('another log');
like(said(), qr/the path is not used.*it is of another store than the log/,
    '  it is logged');
gets_map('  it');
add(100);
level('it');

$t->allow(qr/its "path" cannot change while nginx runs/);
ok(!$t->reload(text("path=$dir-3")), 'a reload does not change the path');


# --- the disk of a primary hangs, and another node takes over

if (full()) {
    my $b = UrlStore::Test->new(log => 'notice', globals =>
        "load_module $UrlStore::Test::POSTGRES;");

    spew($b->dir . '/log', $pg->conninfo);
    spew($b->dir . '/map.json', slurp($t->dir . '/map.json'));
    $b->run(text('') =~ s/node=n0/node=n1/r);
    ok(wait_until(20, sub { $b->get('/health')->json->{status} eq 'standby' }),
        'another node');

    $t->disk('stall 1');
    add(100);
    sleep 2;
    is($b->post('/cluster?promote', '')->{status}, 200, '  is promoted');
    ok(wait_until(20, sub { stats()->{state} eq 'standby' }),
        'the one whose disk hangs becomes a standby');
    same('  it');
    like(said(), qr/the path is not used.*: a write to it has not returned/,
        '  it is logged');
    $t->disk('');
    level('its disk is back');
    $t->kill_all;
    $t->start;
    ok(wait_until(20, sub { stats()->{state} eq 'standby' }), '  and used');
    is(stats()->{cache_restarts}, 0, '  it was not begun anew');
}
