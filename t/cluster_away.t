#!/usr/bin/perl

# A primary that is cut off from the log.  Meanwhile the other node takes over,
# adds, and makes a base, which removes the rows that the first one knows.  It
# has lost nothing: it is deposed, and follows.  And how long a node that is cut
# off answers hits.

use strict;
use warnings;

use Time::HiRes qw(time);

use lib 't/lib';

use UrlStore::Nodes;
use UrlStore::Postgres;
use UrlStore::Proxy;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $pg = UrlStore::Postgres->new->start;
my @proxies = map { UrlStore::Proxy->new($pg->port) } 0 .. 1;
my $n = UrlStore::Nodes->new(map { $pg->conninfo(port => $_->port) } @proxies);
my @text = ('Content-Type' => 'text/plain');

$_->allow(qr/is tried again/) for $n->nodes;

for my $path ('', 'path=%%DIR%%/data') {
    $n->conf("replicas=0 lease=1s takeover=off $path");
    is($n->begin(sub { $pg->sql('TRUNCATE urlstore_shard, urlstore_log,
        urlstore_base') }), '', 'two nodes, ' . ($path || 'no path'));

    my ($a) = grep { state($_) eq 'ready' } $n->nodes;
    my $b = $n->other($a);
    my $first = add($a, 'before', 50);

    ok(wait_until(20, sub { $b->get("/url/$first")->{status} == 200 }),
        'both have URLs');
    $proxies[$a == ($n->nodes)[1]]->mode('hang');
    $b->post('/cluster?promote', '');
    ok(wait_until(20, sub { state($b) eq 'ready' }), 'the other is promoted');
    add($b, "after$_", 500) for 1 .. 4;
    is($b->post('/cluster?rebase', '')->{status}, 200, '  and makes a base');
    $proxies[$a == ($n->nodes)[1]]->mode('pass');

    ok(wait_until(30, sub { state($a) eq 'standby'
        && ($a->stats->{next_id} // 0) == $b->stats->{next_id} }),
        'the one that was away follows');
    is($a->get("/url/$first")->{body}, "http://before.test/50\n",
        '  with what it had');
    like($a->error_log, qr/deposed: another node has begun term/, '  deposed');
    unlike($a->error_log, qr/has lost/, '  and reports no loss');
}


# --- hits end after stale=

$n->conf('replicas=0 lease=1s takeover=off stale=4s');
is($n->begin(sub { $pg->sql('TRUNCATE urlstore_shard, urlstore_log,
    urlstore_base') }), '', 'two nodes, stale=4s');

my ($primary) = grep { state($_) eq 'ready' } $n->nodes;
my $standby = $n->other($primary);
my $id = add($primary, 'stale', 1);

ok(wait_until(20, sub { hit($standby) }), 'both have a URL');

for my $cut ($standby, $primary) {
    my $proxy = $proxies[$cut == ($n->nodes)[1]];
    my $since = time;

    $proxy->mode('hang');
    ok(wait_until(20, sub { $cut->get('/seen?url=http://none.test/')->{status}
        == 503 }), 'a node is cut off');
    ok(hit($cut), '  which answers hits');
    ok(wait_until(20, sub { !hit($cut) }), '  for a while');

    # it began with the last sign before the cut, which may be a lease old

    cmp_ok(time - $since, '>', 3 * longer(), '  of stale=');
    is($cut->get($_)->{status}, 503, "  $_")
        for "/url/$id", '/seen?url=http://stale.test/1';
    like($cut->get("/url/$id")->{body}, qr/for longer than stale=/, '  why');
    ok(hit($_), '  the others do answer') for $n->other($cut), $n->router;
    $proxy->mode('pass');
    ok(wait_until(20, sub { hit($cut) }), '  and so does it when it is back');
}


# --- an old PostgreSQL primary stays: who only reads goes to the new one

$_->kill_all for $n->nodes, $n->router;

my $x = UrlStore::Postgres->new(name => 'x')->start;
my $y = $x->standby('y')->start;

$x->set(synchronous_standby_names => 'y');
$n = UrlStore::Nodes->new(map { $x->conninfo(hosts => [ $x, $y ]) } 0, 1);
$n->conf('takeover=off path=%%DIR%%/data');
is($n->begin(sub { }), '', 'two nodes, two servers');
$_->allow(qr/is tried again|does not continue/) for $n->nodes;
($primary) = grep { state($_) eq 'ready' } $n->nodes;
$standby = $n->other($primary);
follows('before', 'rows are read');
$y->promote;

my $z = $y->standby('z')->start;

$y->set(synchronous_standby_names => 'z');
ok($n->accepted($primary), 'a new server is promoted, adds go on there');
follows('after', 'the standby reads there');
$y->stop('fast');
ok(wait_until(30, sub { $standby->error_log
    =~ /\[alert\].*its end is before/ }),
    'only the old one is there, which lacks what was read');
$y->start;
ok($n->accepted($primary), 'the new one is back');
follows('back', 'the standby reads there again');


# what is added is there, too, and in its directory

sub follows
{
    my ($name, $what) = @_;

    $id = add($primary, $name, 5);
    ok(wait_until(40, sub { hit($standby) && $standby->stats->{cached}
        >= $standby->stats->{confirmed} }), $what);
}


sub hit { return ($_[0]->get("/url/$id") // {})->{status} == 200 }


sub state { return ($_[0]->get('/health')->json // {})->{status} // '' }


# so many URLs; returns the id of the last one

sub add
{
    my ($t, $name, $count) = @_;

    my $r = $t->post('/add', join('', map { "http://$name.test/$_\n" }
        1 .. $count), @text);

    is($r->{status}, 200, "$count URLs are added");

    return (split /\t/, (split /\n/, $r->{body})[-1])[0];
}
