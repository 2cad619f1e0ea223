#!/usr/bin/perl

# Nodes of a shard whose configurations differ: with another lease, and with
# "replicas=0" on one of them alone; and a node that has the name of another.

use strict;
use warnings;

use lib 't/lib';

use Time::HiRes qw(sleep time);

use UrlStore::Nodes;
use UrlStore::Postgres;
use UrlStore::Proxy;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $pg = UrlStore::Postgres->new->start;
my @proxies = map { UrlStore::Proxy->new($pg->port) } 0 .. 1;
my $n = UrlStore::Nodes->new(map { $pg->conninfo(port => $_->port) } @proxies);
my ($a, $b) = $n->nodes;
my @text = ('Content-Type' => 'text/plain');

$_->allow(qr/is tried again/) for $n->nodes;


# --- the primary has a lease that is longer than that of the other node

$n->conf('replicas=0', 'lease=6s', 'lease=1s takeover=1s');
is($n->begin(sub { }), '', 'two nodes');
primary($a);
my $ms = 6000 * longer();

like($pg->sql('SELECT settings FROM urlstore_shard'), qr/^store lease $ms$/m,
    'the log has the lease of the term');

$proxies[0]->mode('hang');

my (%denied, $added);
my $url = 'http://lease.test/';

ok(wait_until(30, sub {
    my $before = time;
    my $r = $a->get("/seen?url=$url", Accept => 'text/plain');

    $denied{$before} = 1 if $r && $r->{body} =~ /^-\tunseen/;
    $r = $b->post('/add', "$url\n", @text);
    $added //= time if $r && $r->{status} == 200;
    return $added && time - $added > 1;
}), 'the node that is cut off is followed by the other one');

is(scalar(grep { $_ > $added } keys %denied), 0,
    '  and denies nothing that it has added');
ok(scalar(keys %denied), '  but has denied before');

$proxies[0]->mode('pass');


# --- a third one, with the configuration of the primary

primary($b);
$_->kill_all for $n->nodes;
$n->conf('replicas=0 lease=1s takeover=2s');
$a->start;
primary($a);

my $copies = UrlStore::Nodes->new($pg->conninfo, $pg->conninfo);
my ($copy) = $copies->nodes;
my $begun = term();

$copies->conf('replicas=0 lease=1s takeover=2s');
$copy->allow(qr/by the name of this node/);
$copy->start;
ok(wait_until(20, sub { state($copy) eq 'standby' }), 'a copy of a node');
ok(wait_until(20, sub { $copy->error_log
    =~ /another process is the primary by the name of this node, "n0"/ }),
    '  logs that its name is in use');
sleep 2 * longer();
is(term(), $begun, '  and does not claim the term');
is(state($a), 'ready', '  the node is the primary as before');
$a->kill_all;
ok(wait_until(20, sub { state($copy) eq 'ready' }),
    '  and is followed when it has ended');
$copy->kill_all;


# --- one node counts what one server alone has

$_->kill_all for $n->nodes;

my $second = $pg->standby('b')->start;

$pg->set(synchronous_standby_names => 'b');
$n->conf('lease=1s', 'takeover=1s', 'takeover=1s replicas=0');
$a->start;
primary($a);
$b->start;
ok(wait_until(20, sub { state($b) eq 'standby' }), 'the other one follows');
ok(wait_until(20, sub {
    $b->error_log =~ /\[warn\].* of shard 0 differ: .* has "replicas=0"/
}), '  and logs what differs');

my $term = term();

$a->kill_all;
sleep 4 * longer();
is(state($b), 'standby', 'it does not take over by itself');
is(term(), $term, '  and begins no term');
is($b->post('/cluster?promote', '')->{status}, 200, '  but by command');


sub state { return ($_[0]->get('/health')->json // {})->{status} // '' }
sub term { return $pg->sql('SELECT term FROM urlstore_shard') }


sub primary
{
    my ($t) = @_;

    ok(wait_until(30, sub {
        return 1 if state($t) eq 'ready';
        $t->post('/cluster?promote', '') if state($t) eq 'standby';
        return 0;
    }), 'the node is the primary');
}
