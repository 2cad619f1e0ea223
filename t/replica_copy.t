#!/usr/bin/perl

# follow= with path=: a replica that keeps the primary's files in a directory.
# A restart of it answers what is there, also without a primary, and goes on
# with the rest; another store at the primary's begins anew.
#
# Kills at each step and damage of each byte: t/unit/replica.c.  Under load: the
# second replica of t/replica_campaign.t.

use strict;
use warnings;

use lib 't/lib';

use UrlStore::Proxy;
use UrlStore::Replica;
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;
my @text = ('Content-Type' => 'text/plain');
my $primary = UrlStore::Test->new(log => 'notice');
my $proxy = UrlStore::Proxy->new($primary->port);
my $from = 'http://127.0.0.1:' . $proxy->port;
my $replica = UrlStore::Test->new(log => 'notice');
my $dir = $replica->dir . '/copy';
my $conf = zone_conf('32m path=%%DIR%%/data sync=50ms marks=visited');
my $at = 0;

$_->allow_kills for $primary, $replica;
$primary->run($conf);
ok($primary->ready(write => 1), 'a primary');
add(2000);
$primary->post('/mark/visited', join("\n", 0 .. 99), @text);
$primary->forget("/url/$_") for 5, 6, 7;

$replica->run(zone_conf("32m follow=$from/ path=$dir snapshot=64k"));
same('a replica with a directory');
like(slurp("$dir/manifest"), qr/^state replica$/m, '  has a copy');
is(slurp($_), slurp($primary->dir . '/data/' . s{.*/}{}r),
    '  byte for byte: ' . s{.*/}{}r) for glob "$dir/journal.*";


# --- a restart

restart(sub { $replica->stop }, 'restarted');
restart(sub { $replica->kill_all }, 'killed');


# a journal that has grown is replaced by a snapshot

add(4000);
same('much was added');
ok(wait_until(5, sub { my @s = glob "$dir/snapshot.*"; @s }),
    'a snapshot is taken');
add(50);
same('  and all goes on');
restart(sub { $replica->kill_all }, 'killed, with a snapshot');

ok(wait_until(5, sub { $replica->kill_worker }), 'its worker is killed');
add(20);
same('  another one goes on');


# the primary's settings change

$primary->conf($conf =~ s/marks=visited/marks=visited,done/r);
$primary->reload;
ok(wait_until(10, sub {
    slurp("$dir/manifest") =~ /^store marks visited,done$/m
}), 'a mark more: the copy has it');
$primary->post('/mark/done', "1\n2\n", @text);
same('  and the marks');
restart(sub { $replica->kill_all }, 'killed, with another mark');
is(differs($primary, $replica, 'done'), '', '  the marks are there');


# what the command says

my $stat = qx($top/build/urlstore stat $dir 2>&1);

like($stat, qr/\breplica\b/, 'urlstore stat');
is($? >> 8, 0, '  reads it');

$replica->stop;
like(qx($top/build/urlstore dump $dir 2>&1),
    qr{^0\thttp://h1\.example/1/1/}, 'urlstore dump');
like(qx(echo http://a.example/ | $top/build/urlstore add $dir 2>&1),
    qr/a replica's copy of another server's store/, 'urlstore add refuses it');


# --- directories that are others'

# the journal of a primary whose manifest is lost

my $lost = $replica->dir . '/lost';

mkdir $lost;
chmod 0777, $lost;
qx(cp ${\$primary->dir}/data/journal.* $lost/);
my $size = -s glob "$lost/journal.*";

for (
    [ "follow=$from/ path=$lost",
        qr/a journal or a snapshot, but no "manifest"/ ],
    [ "path=$dir", qr/a replica's copy of another server's store/ ],
    [ "follow=$from/ path=" . $primary->dir . '/data',
        qr/a store that is no replica's copy/ ],
) {
    my ($options, $like) = @$_;
    my ($rc, $out) = $replica->check(zone_conf("32m $options"));

    isnt($rc, 0, "refused: $options");
    like($out, $like, '  says why');
}

is(-s glob("$lost/journal.*"), $size,
    'the journal of a lost manifest is there');

my ($rc, $out) = $replica->check(
    zone_conf("32m follow=$from/ path=$dir marks=a"));
like($out, qr/"follow" has no "marks"/, 'refused with marks=');


# --- damage, and another store

for my $file (glob "$dir/snapshot.*") {
    truncate $file, (-s $file) / 2 or die "$file: $!";
}

$replica->start;
same('a copy that was damaged is fetched');
like($replica->error_log, qr/\[warn\].*the copy is removed, all is fetched/,
    '  it is logged');

$primary->stop;
system('rm', '-rf', $primary->dir . '/data');
$primary->start;
ok($primary->ready(write => 1), 'another primary');
add(30);
same('the replica has the other store');

my ($uuid) = slurp($primary->dir . '/data/manifest') =~ /^uuid (\w+)$/m;

like(slurp("$dir/manifest"), qr/^uuid $uuid$/m, '  so has its directory');
restart(sub { $replica->stop }, 'restarted');

done_testing();


# the replica ends by $end and starts: first without a primary

sub restart
{
    my ($end, $what) = @_;

    $end->();
    $proxy->mode('refuse');
    $replica->start;

    ok(wait_until(5, sub {
        $replica->get('/health')->{status} == 200 }), "$what: it is ready");

    my $r = $replica->get('/health')->json;

    ok(!$r->{connected}, '  without a primary');
    is($replica->get('/url/1')->{status}, 200, '  and answers');
    is($replica->get('/url/999999')->{status}, 503, '  denies nothing');
    is(differs($primary, $replica, 'visited'), '', '  all is there');

    add(20);
    $proxy->mode('pass');
    same("$what: it goes on");
    is($replica->get('/stats')->json->{restarts}, 0, '  where it was');
    cmp_ok($replica->get('/stats')->json->{received_bytes}, '<', 20000,
        '  nothing is sent twice');
}


sub add
{
    my ($n) = @_;

    my $r = $primary->post('/add', join('', map { $at++; 'http://h'
        . $at % 50 . ".example/1/$at/" . 'x' x ($at % 31) . "\n" } 1 .. $n),
        @text);

    is($r->{status}, 200, "$n URLs") if $r->{status} != 200;
}


sub same
{
    my ($what) = @_;

    ok(level($primary, $replica), "$what: level")
        or diag $replica->get('/health')->{body};
    is(differs($primary, $replica, 'visited'), '', '  the same');
}
