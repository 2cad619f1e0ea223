#!/usr/bin/perl

# base=: a store that has URLs becomes the base of a replicated log.  Ids,
# marks, claims and deleted ids stay; a kill in between; what is refused.

use strict;
use warnings;

use lib 't/lib';

use UrlStore::Postgres;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $top = $UrlStore::Test::TOP;
my $pg = UrlStore::Postgres->new->start;
my @text = ('Content-Type' => 'text/plain');
our $options = 'marks=done,bad revisit=1h';


sub node
{
    my ($name, $zone) = @_;

    my $t = UrlStore::Test->new(globals =>
        "load_module $UrlStore::Test::POSTGRES;");

    $t->allow(qr/the log .*is tried again/, qr/the log does not confirm/);
    $t->allow_kills;
    spew($t->dir . '/log', $pg->conninfo);

    return $t->run(<<"CONF");
urlstore_cluster crawl %%DIR%%/map.json;
urlstore_zone u 16m cluster=crawl shard=0 node=$name $options lease=1s
    replicas=0 replicate=postgres:\@%%DIR%%/log $zone;
server { listen 127.0.0.1:%%PORT%%; location / { urlstore_api u; }
    location = /cluster { urlstore_cluster_admin crawl; } }
CONF
}


sub becomes
{
    my ($t, $state) = @_;

    return ok(wait_until(30, sub { ($t->get('/health')->json // {})->{status}
        eq $state }), "  $state") || diag($t->get('/health')->{body});
}


sub reason
{
    my ($t, $why, $what) = @_;

    ok(wait_until(20, sub { ($t->get('/health')->json->{reason} // '')
        =~ /$why/ }), $what) or diag($t->get('/health')->{body});
}


# what a store lists: all with the time of their claim, and by mark

sub all
{
    my ($t) = @_;

    return join "--\n", map { $t->get("/urls?$_", Accept => 'text/plain')
        ->{body} } 'times=1', 'mark=done', 'mark=bad';
}


# --- a single node, some of whose URLs are in a snapshot and some are not

my $old = UrlStore::Test->new->run(<<"CONF");
urlstore_zone u 16m path=%%DIR%%/u $options snapshot=32k;
server { listen 127.0.0.1:%%PORT%%; location / { urlstore_api u; } }
CONF

ok($old->ready(write => 1), 'a single node');

for my $n (0 .. 4) {
    $old->post('/add', join('', map { "http://h$_.base.test/$n/" . $_ * 7
        . "\n" } 1 .. 2000), @text);
}

$old->forget("/url/$_") for 10 .. 19, 7000;
$old->post('/mark/done', join("\n", 20 .. 99, 9999) . "\n", @text);
$old->post('/mark/bad', "50\n", @text);
$old->post('/claim?at=1700000000', join("\n", 100 .. 199) . "\n", @text);

my $all = all($old);
my $uuid = $old->stats->{uuid};
my $dir = $old->dir . '/u';

ok(wait_until(20, sub { glob("$dir/snapshot.*") }), '  with a snapshot');


# --- its directory is not there, has nothing, is in use

for my $bad ([ "$dir/none", 'cannot be opened .*No such file' ],
    [ '/', 'there is no store in the directory' ])
{
    my $t = node('n2', "base=$bad->[0]");

    reason($t, $bad->[1], "base=$bad->[0]");
    $t->kill_all;
}

SKIP: {
    skip 'nginx drops no rights', 1 if $> != 0;
    mkdir "$dir.closed", 0700;

    my $t = node('n2', "base=$dir.closed");

    reason($t, 'which belongs to user 0 with mode 0700, by user \d+ cannot be '
        . 'opened .*Permission denied', "root's backup");
    $t->kill_all;
}

{
    local $options = 'revisit=1h';

    my $t = node('n2', "base=$dir");

    reason($t, '"base" .*: its data were stored with marks "done,bad", not '
        . 'with "".* the zone needs "marks=done,bad"', 'other options');
    $t->kill_all;
}

is($pg->sql('SELECT count(*) FROM urlstore_shard'), 0, '  no log begins');

my $a = node('n0', "base=$dir");

reason($a, 'is in use: its server has to be stopped', 'a directory in use');
is($pg->sql('SELECT count(*) FROM urlstore_log WHERE lsn >= 0'), 0,
    '  nothing is made of it');

my $b = node('n1', '');

reason($b, 'node "n0" makes its base of a store', 'another node waits');
is($b->post('/add', "http://x.test/\n", @text)->{status}, 503,
    '  and adds nothing');


# --- the base is made; a kill meanwhile

my $held = $pg->hold('LOCK TABLE urlstore_base IN EXCLUSIVE MODE');

ok($old->stop, 'the single node is stopped');
ok(wait_until(20, sub { $pg->sql('SELECT count(*) FROM pg_stat_activity WHERE'
    . " wait_event_type = 'Lock' AND query LIKE '%urlstore_base%'") }),
    'its base is being made');
kill KILL => $a->worker_pids;
$held->end;

# it is n0's, but the other one may be the first to claim the log then

my ($first, $second);

ok(wait_until(30, sub { ($first) = grep { ($_->get('/health')->json // {})
    ->{status} eq 'ready' } $a, $b }), 'one of them is the primary');
$second = $first == $a ? $b : $a;
becomes($second, 'standby');
like($a->error_log, qr/the log's base is made: LSN \d+/, 'the base is made');
is(all($first), $all, 'ids, claims and marks are those of the single node');
is($first->stats->{uuid}, $uuid, '  the uuid, too');
is($first->get('/url/12')->{status}, 410, '  and deleted ids');

my $map = `$top/build/urlstore cluster new 0=@{[ $uuid =~ tr/-//dr ]},n0,n1`;

is($first->post('/cluster', $map)->{status}, 204, 'a map');
is($first->post('/add', "http://new.test/\n", @text)->{body},
    "10000\tnew\thttp://new.test/\n", 'the next id follows');
is($second->post('/cluster?promote', '')->{status}, 200,
    'the other node is promoted');
becomes($first, 'standby');
my ($urls) = split /--\n/, $all;

is(substr(all($second), 0, length $urls), $urls, '  and has the same');
is((split /--\n/, all($second))[1], (split /--\n/, $all)[1],
    '  marks as well');

$b->post('/cluster?promote', '') if $second == $a;
becomes($b, 'ready');
becomes($a, 'standby');


# --- the single node does not go on beside it

$old->allow(qr/its store is in a replicated log now/);

my ($rc, $out) = $old->check;

isnt($rc, 0, 'the single node does not start again');
like($out, qr/\[emerg\].*path "\Q$dir\E": its store is in a replicated log/,
    '  and says why');


# --- from now on the option changes nothing; another store is refused

$a->kill_all;
$a->start;
becomes($a, 'standby');
is($pg->sql('SELECT base FROM urlstore_shard'), $pg->sql('SELECT max(base) '
    . 'FROM urlstore_base'), 'a second start makes no other base');

my $other = UrlStore::Test->new->run(<<"CONF");
urlstore_zone u 16m path=%%DIR%%/u $options;
server { listen 127.0.0.1:%%PORT%%; location / { urlstore_api u; } }
CONF

ok($other->ready(write => 1), 'another store');
$other->post('/add', "http://other.test/\n", @text);
ok($other->stop, '  is stopped');

my $c = node('n3', 'base=' . $other->dir . '/u');

reason($c, 'it is there already, of node "n\d", and is not that of the store '
    . 'in "base" .*: to begin it with that, stop all nodes',
    'a log of another store is not used');


# --- a backup will do

$_->kill_all for $a, $b, $c;
$pg->sql("DELETE FROM $_") for qw(urlstore_log urlstore_base urlstore_shard);

my $copy = $a->dir . '/backup';

is(system("$top/build/urlstore backup $dir $copy >/dev/null 2>&1"), 0,
    'a backup');
system('chmod', '-R', 'a+rX', $copy);
$a = node('n0', "base=$copy");
becomes($a, 'ready');
is(all($a), $all, '  is the base of a log');


# --- keys of an older version are those of this one, in a log and in a base

my $icu = sub { resealed($_[0]
    =~ s{^(store norm crawler/1) www=\w+}{$1 unicode=15.0 www=first}mr) };

sub settings
{
    return $pg->sql('SELECT settings FROM urlstore_shard');
}

$a->kill_all;
$pg->sql("UPDATE urlstore_shard SET settings = '" . $icu->(settings()) . "'");
like(settings(), qr/unicode=15\.0/, 'a log with keys of an older version');
$a->start;
becomes($a, 'ready');
unlike(settings(), qr/unicode/, '  has the signature of this one');
is(all($a), $all, '  and all URLs');

$a->kill_all;
$pg->sql("DELETE FROM $_") for qw(urlstore_log urlstore_base urlstore_shard);
system('cp', '-r', $copy, "$copy.icu");
spew("$copy.icu/manifest", $icu->(slurp("$copy.icu/manifest")));
$a = node('n0', "base=$copy.icu");
becomes($a, 'ready');
is(all($a), $all, 'a base with such keys');
unlike(settings(), qr/unicode/, '  is the beginning of a log of this version');

# the same with hosts of which www. counts otherwise, as 75e9eef wrote it

{
    local $options = '';
    my $txt = slurp('t/data/directories/www-first.txt');
    my $host = 'http://homeoffice.gov.uk/';

    $a->kill_all;
    $pg->sql("DELETE FROM $_")
        for qw(urlstore_log urlstore_base urlstore_shard);
    system('cp', '-r', 't/data/directories/www-first', "$copy.www");
    system('chmod', '-R', 'a+rX', "$copy.www");
    $a = node('n0', "base=$copy.www");
    becomes($a, 'ready');
    is($a->get('/urls?limit=70', Accept => 'text/plain')->{body}, $txt,
        'a base of other suffixes has all its ids');
    my ($is) = slurp("$copy.www/manifest") =~ /^uuid (\w+)$/m;
    is($a->post('/cluster', scalar `$top/build/urlstore cluster new 0=$is,n0`)
        ->{status}, 204, '  and gets a map');
    is($a->post('/seen', "$host\nhttps://gitbook.io/\n", @text)->{body},
        $txt =~ /^(3)\t(.*)/m && "$1\tseen\t$2\n"
        . "-\tunseen\thttps://gitbook.io/\n", '  by the list of today');
    is($a->stats->{changed_urls}, undef, '  a node counts no changed_urls');
}


# --- a backup of a shard has the map of its day: it is to be posted again

$_->kill_all for $a;
$pg->sql("DELETE FROM $_") for qw(urlstore_log urlstore_base urlstore_shard);

my $shard = UrlStore::Test->new->conf(<<"CONF");
urlstore_cluster crawl %%DIR%%/map.json;
urlstore_zone u 16m path=%%DIR%%/u cluster=crawl shard=0 node=n0 $options;
server { listen 127.0.0.1:%%PORT%%; location / { urlstore_api u; } }
CONF

is(system("$top/build/urlstore restore $copy $shard->{dir}/u >/dev/null 2>&1"),
    0, 'a store of no shard is restored');
spew("$shard->{dir}/map.json", $map);
$shard->run;
ok(wait_until(20, sub { $shard->post('/add', "http://shard.test/\n", @text)
    ->{body} =~ /new/ }), '  and becomes a shard with a map');

my $id = $shard->stats->{next_id} - 1;

is(system("$top/build/urlstore backup $shard->{dir}/u $copy.shard "
    . '>/dev/null 2>&1'), 0, 'a backup of it');
system('chmod', '-R', 'a+rX', "$copy.shard");
ok($shard->stop, '  which is stopped');

$a = node('n0', "base=$copy.shard path=%%DIR%%/u");

sub waits
{
    my ($t, $what) = @_;

    ok(wait_until(20, sub { ($t->get('/health?write=1')->json // {})->{status}
        eq 'no-map' }), "$what has no map");
    is($t->get('/cluster')->{status}, 404, '  shows none');
    like($t->post('/add', "http://shard.test/\nhttp://other.test/\n", @text)
        ->{body}, qr/^(?:-\tunavailable\tmoved\n){2}/, '  and answers nothing');
}

waits($a, 'the log of a backup');
ok(wait_until(10, sub { $a->error_log
    =~ /was restored, and needs the newest map again/ }), '  and says so');
is($a->post('/cluster?rebase', '')->{status}, 503, '  no base is made of it');
$b = node('n1', "path=%%DIR%%/u");
becomes($b, 'standby');
is($b->post('/cluster?promote', '')->{status}, 200,
    'the other node is promoted');
waits($b, 'it');
$_->kill_all for $a, $b;
$_->start for $a, $b;
ok(wait_until(30, sub { grep { ($_->get('/health')->json // {})->{status}
    eq 'ready' } $a, $b }), 'both are started again');
($a) = grep { $_->get('/health')->json->{status} eq 'ready' } $a, $b;
waits($a, 'the primary');
is($a->post('/cluster', $map)->{status}, 204, 'the map is posted');

sub answers
{
    is($a->post('/add', "http://shard.test/\n", @text)->{body},
        "$id\tseen\thttp://shard.test/\n", $_[0]);
}

answers('  and it answers');

for my $how ('rows', 'a base') {
    is($a->post('/cluster?rebase', '')->{status}, 200, 'a base')
        if $how eq 'a base';
    $a->kill_all;
    system('rm', '-rf', "$a->{dir}/u");
    $a->start;
    ok(wait_until(30, sub { ($a->get('/health')->json // {})->{status}
        =~ /standby|ready/ }), "started, from $how");
    $a->post('/cluster?promote', '');
    becomes($a, 'ready');
    answers('  it answers');
}
