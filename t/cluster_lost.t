#!/usr/bin/perl

# A log that is shorter than it was, as after a restore of PostgreSQL to an
# earlier point: both nodes notice, nothing is added, denied or applied any
# more, and hits go on.

use strict;
use warnings;

use lib 't/lib';

use UrlStore::Nodes;
use UrlStore::Postgres;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $pg = UrlStore::Postgres->new->start;
my $n = UrlStore::Nodes->new($pg->conninfo, $pg->conninfo);

$n->conf('replicas=0 takeover=2s');
is($n->begin(sub { }), '', 'two nodes');

my $holder = $pg->sql('SELECT holder FROM urlstore_shard');
my $primary = ($n->nodes)[$holder eq 'n1'];
my $standby = $n->other($primary);
my @text = ('Content-Type' => 'text/plain');

$_->allow(qr/the log .*lost|is tried again/) for $n->nodes;

my $short = $pg->sql('SELECT max(lsn) FROM urlstore_log');

is($primary->post('/add', "http://a.test/$_\n", @text)->{status}, 200, 'added')
    for 1 .. 3;

my $id = $primary->post('/seen', "http://a.test/3\n", @text)->{body};

$id =~ s/\t.*\n//;
ok(wait_until(10, sub { $standby->get("/url/$id")->{status} == 200 }),
    'the standby has it');

$pg->sql("DELETE FROM urlstore_log WHERE lsn > $short; "
    . "UPDATE urlstore_shard SET acked = least(acked, $short)");

ok(wait_until(20, sub { $primary->get('/seen?url=http://b.test/')->{status}
    == 503 }), 'the primary denies nothing');

for my $t ($primary, $standby) {
    my $who = $t == $primary ? 'primary' : 'standby';

    ok(wait_until(20, sub { $t->error_log =~ /\[(?:emerg|alert)\].*the log/ }),
        "$who: logged");
    is($t->get("/url/$id")->{body}, "http://a.test/3\n", '  an id is answered');
    is($t->get('/seen?url=http://a.test/3')->{status}, 200, '  a hit, too');
    is($t->post('/add', "http://c.test/\n", @text)->{status}, 503,
        '  nothing is added');
    diag(map { s/.*urlstore_zone/$who: urlstore_zone/r . "\n" }
        grep { /\[(?:emerg|alert)\]/ } split /\n/, $t->error_log)
        if $ENV{US_SHOW};
}

sleep 4;
is($pg->sql('SELECT max(lsn) FROM urlstore_log'), $short,
    'nobody takes over: the log is as it was');
