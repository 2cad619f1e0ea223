#!/usr/bin/perl

# A claim of a term whose commit takes long: PostgreSQL's standby is away for
# longer than a look at the log may take.  The node goes on waiting for its one
# claim.  A claim that was given up would leave a session at the server, and
# another term would follow.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep);

use UrlStore::Nodes;
use UrlStore::Postgres;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $pg = UrlStore::Postgres->new->start;
my $second = $pg->standby('b')->start;

$pg->set(synchronous_standby_names => 'b');

my $n = UrlStore::Nodes->new($pg->conninfo, $pg->conninfo);

$n->conf('lease=1s takeover=1s');
is($n->begin(sub { }), '', 'two nodes');

my $primary = ($n->nodes)[sql('SELECT holder FROM urlstore_shard') eq 'n1'];
my $term = sql('SELECT term FROM urlstore_shard');

$second->pause;
$primary->kill_all;
ok(wait_until(10, \&claims), 'the other node claims the next term');
sleep 3;                               # longer than a look, less than a commit
is(claims(), 1, '  once, though the commit takes long');

$second->resume;
ok($n->accepted($n->other($primary)), 'it is the primary');
is(sql('SELECT term FROM urlstore_shard'), $term + 1, '  of that term');


sub sql { return $pg->sql(@_) }


# the claims that wait at the server

sub claims
{
    return sql("SELECT count(*) FROM pg_stat_activity WHERE state = 'active'"
        . " AND usename = 'urlstore' AND query LIKE '%holder = \$%'");
}
