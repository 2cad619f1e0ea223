#!/usr/bin/perl

# The standby of PostgreSQL is away for longer than takeover=, and the shard is
# idle: its primary cannot renew its lease, but lives, and is not deposed.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep);

use UrlStore::Nodes;
use UrlStore::Postgres;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $pg = UrlStore::Postgres->new(name => 'a',
    synchronous_standby_names => 'b')->start;
my $b = $pg->standby('b')->start;
my $n = UrlStore::Nodes->new($pg->conninfo, $pg->conninfo);

$n->conf('takeover=4s lease=1s');
is($n->begin(sub { }), '', 'two nodes');
$_->allow(qr/is tried again/) for $n->nodes;

my $was = $pg->sql('SELECT term, holder FROM urlstore_shard');

$b->pause;
sleep 9 * longer();

my ($stalled) = grep { ($_->get('/health')->json // {})->{status} eq 'stalled' }
    $n->nodes;

ok($stalled, 'the primary is stalled');
like($stalled->get('/health')->json->{reason},
    qr/waits for a synchronous standby \(synchronous_standby_names = "b"\)/,
    'and says what it waits for');
cmp_ok($pg->sql("SELECT count(*) FROM pg_stat_activity"
    . " WHERE usename = 'urlstore'"), '<=', 4, 'few sessions');
$b->resume;
ok($n->accepted($n->nodes), 'adds go on');
is($pg->sql('SELECT term, holder FROM urlstore_shard'), $was,
    'in the same term');
