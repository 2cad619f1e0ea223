#!/usr/bin/perl

# A log that is shorter than it was, as after a restore of PostgreSQL to an
# earlier point: both nodes notice, nothing is added, denied or applied any
# more, and hits go on.  The log says what it has lost, so that a node which was
# behind does not take over either, until an operator gives the rows up.

use strict;
use warnings;

use lib 't/lib';

use UrlStore::Nodes;
use UrlStore::Postgres;
use UrlStore::Proxy;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $pg = UrlStore::Postgres->new->start;
my @proxies = map { UrlStore::Proxy->new($pg->port) } 0 .. 1;
my $n = UrlStore::Nodes->new(map { $pg->conninfo(port => $_->port) } @proxies);

$n->conf('replicas=0 takeover=2s stale=4s');   # ends no hits here
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

    my $list = $t->post('/url', join('', map { "$_\n" } ($id) x 9000, 999),
        @text, Accept => 'text/plain');

    is($list->{status}, 200, '  a list with an id that is not known');
    is($list->{body}, "$id\thttp://a.test/3\n" x 9000
        . "999\t-\tunavailable\n", '  is whole');
    is($t->post('/add', "http://c.test/\n", @text)->{status}, 503,
        '  nothing is added');
    diag(map { s/.*urlstore_zone/$who: urlstore_zone/r . "\n" }
        grep { /\[(?:emerg|alert)\]/ } split /\n/, $t->error_log)
        if $ENV{US_SHOW};
}

like($pg->sql('SELECT settings FROM urlstore_shard'), qr/^store lost \d+$/m,
    'the log says that it has lost rows');

my $term = term();

sleep 5 * longer();
is(term(), $term, 'nobody takes over');
is($_->get("/url/$id")->{body}, "http://a.test/3\n", '  both still answer')
    for $primary, $standby;
is($standby->post('/cluster?promote', '')->{status}, 503, '  or is promoted');
forget($standby, $primary);


# --- a node that has applied less, and so cannot notice

($primary, $standby) = ($standby, $primary);
$proxies[$standby == ($n->nodes)[1]]->mode('hang');
$short = $pg->sql('SELECT max(lsn) FROM urlstore_log');
($id) = split /\t/, $primary->post('/add', "http://d.test/\n", @text)->{body};
$pg->sql("DELETE FROM urlstore_log WHERE lsn > $short; "
    . "UPDATE urlstore_shard SET acked = least(acked, $short)");
$proxies[$standby == ($n->nodes)[1]]->mode('pass');

ok(wait_until(20, sub { $standby->error_log
    =~ /\[alert\].*a node reports that the log of shard 0 has lost rows/ }),
    'a node that was behind learns of it');
$term = term();
sleep 4 * longer();
is(term(), $term, '  and does not take over');
is($primary->get("/url/$id")->{body}, "http://d.test/\n",
    '  the other one answers what is lost');
like($standby->get('/health')->json->{reason} // '', qr/forget/,
    '  the reason is in its state');
forget($standby, $primary);


# --- the other node has taken over before the loss is noticed

($primary, $standby) = ($standby, $primary);
$proxies[$standby == ($n->nodes)[1]]->mode('hang');
$short = $pg->sql('SELECT max(lsn) FROM urlstore_log');
$primary->post('/add', join('', map { "http://e.test/$_\n" } 1 .. 9), @text);
$proxies[$primary == ($n->nodes)[1]]->mode('hang');
$pg->sql("DELETE FROM urlstore_log WHERE lsn > $short; "
    . "UPDATE urlstore_shard SET acked = least(acked, $short)");
$proxies[$standby == ($n->nodes)[1]]->mode('pass');
ok(wait_until(20, sub { ($standby->post('/add', "http://f.test/\n", @text)
    // {})->{status} == 200 }), 'the other node takes over, and gives ids');

($id) = split /\t/, $standby->post('/seen', "http://f.test/\n", @text)->{body};

$proxies[$primary == ($n->nodes)[1]]->mode('pass');
ok(wait_until(20, sub { ($primary->get("/url/$id") // {})->{status} == 503 }),
    'the one that has lost rows answers nothing');
is($standby->get("/url/$id")->{body}, "http://f.test/\n",
    '  the other one does');
ok(wait_until(20, sub { $standby->post('/add', "http://g.test/\n",
    @text)->{status} == 503 }), '  and adds no more');
forget($standby, $primary);


sub term { return $pg->sql('SELECT term FROM urlstore_shard') }


# at one of the nodes: both go on, with a higher epoch

sub forget
{
    my ($at, $other) = @_;

    ok(wait_until(20, sub { ($at->get('/health')->json // {})->{status}
        =~ /standby|stalled/ }), 'it is loaded');

    my $epoch = $at->stats->{epoch};

    is($at->post('/cluster?forget', '')->{status}, 200, 'given up by command');
    ok(wait_until(20, sub {
        ($at->get('/health')->json // {})->{status} eq 'ready'
        && ($other->get('/health')->json // {})->{status} eq 'standby' }),
        '  one is the primary, the other follows');
    is($_->stats->{epoch}, $epoch + 1, '  the epoch is a higher one')
        for $at, $other;
    is($at->post('/add', "http://h.test/$epoch\n", @text)->{status}, 200,
        '  and it adds');
    ok(wait_until(20, sub {
        ($other->stats->{next_id} // -1) == $at->stats->{next_id} }),
        '  for both');
    is($at->post('/cluster?forget', '')->{status}, 200, '  sent again');
    is($other->post('/cluster?forget', '')->{status}, 409, '  at the other');
}
