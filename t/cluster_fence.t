#!/usr/bin/perl

# Changes that arrive in pieces while another node becomes the primary: the rest
# of them never enters the store of what is a standby then.  Each client is
# refused and is answered that something was done.  The ids go on as the log has
# them, at both nodes, also when the first one is the primary again.

use strict;
use warnings;

use lib 't/lib';

use Time::HiRes qw(sleep);

use UrlStore::Nodes;
use UrlStore::Postgres;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $pg = UrlStore::Postgres->new->start;
my $n = UrlStore::Nodes->new($pg->conninfo, $pg->conninfo);
my @text = ('Content-Type' => 'text/plain', Accept => 'text/plain');
my ($next, $round) = (0, 0);

# what a slow client sends before the change, and after it: URLs of one site, to
# which later records refer

my $long = 'http://shop.test/catalogue/electronics/cameras/item';

my @slow = (
    ['POST', '/add', sub { ("$long-$round-0\n",
        join '', map { "$long-$round-$_.html?session=abcdefgh\n" } 1 .. 40) }],
    ['POST', '/add?older=1h', sub { ("$long-$round-old\n", "$long-0-0\n") }],
    ['POST', '/mark/m', sub { ("1\n", "2\n3\n") }],
    ['DELETE', '/mark/d', sub { ("1\n", "2\n3\n") }],
    ['POST', '/claim', sub { ("1\n", "2\n3\n") }],
    ['POST', '/claim?clear=1', sub { ("4\n", "5\n") }],
);


# --- by command, to and fro

$n->conf('replicas=0 takeover=off lease=1s marks=m,d revisit=1h');
is($n->begin(sub { }), '', 'two nodes');

my ($a, $b) = $n->nodes;

($a, $b) = ($b, $a) if state($b) eq 'ready';
both($a, $b);
$next = $a->get('/stats')->json->{next_id};
add($a, map { "http://base.test/$_" } 0 .. 9);
is($a->post('/mark/d', join('', map { "$_\n" } 0 .. 9), @text)->{status}, 200,
    'marks');

over($a, $b, sub { promote($b) }, 'by command');
promote($a);
both($a, $b);
same($a, $b, 'the first node is the primary again');
add($a, map { "$long-9$_.html?session=abcdefgh" } 0 .. 3);

over($a, $b, sub { promote($b); both($b, $a); promote($a) },
    'to and fro before the rest comes', $a);


# --- a base by the node that was deposed

over($a, $b, sub { promote($b) }, 'before a base');
promote($a);
both($a, $b);
is($a->post('/cluster?rebase', '', Accept => 'text/plain')->{status}, 200,
    'a base by the node that was deposed');
again($a, $b);


# --- the primary stands still for longer than the lease

$n->conf('replicas=0 takeover=2s lease=1s marks=m,d revisit=1h');
is($n->begin(sub { $pg->sql(
    'TRUNCATE urlstore_shard, urlstore_log, urlstore_base') }), '', 'anew');

($a, $b) = $n->nodes;
($a, $b) = ($b, $a) if state($b) eq 'ready';
both($a, $b);
$next = $a->get('/stats')->json->{next_id};
add($a, map { "http://base.test/$_" } 0 .. 9);

over($a, $b, sub {
    my @pids = ($a->pid, $a->worker_pids);

    kill STOP => @pids;
    ok(wait_until(30, sub { state($b) eq 'ready' }), 'the other node is it');
    kill CONT => @pids;
}, 'a takeover');
again($a, $b);


# --- claims of nodes that hear nothing of the log

is($a->get('/seen?url=http://base.test/0&times=1')->{status}, 200,
    'times at a standby') if both($b, $a) || both($a, $b);

# clients that have begun before, and end after it

my %slow = map { $_ => $_->client } $a, $b;

for my $t ($a, $b) {
    my $before = $t->stats->{body_bytes};

    $slow{$t}->begin(POST => '/seen?older=1h', @text);
    $slow{$t}->piece("http://base.test/0\n");
    ok(wait_until(10, sub { $t->stats->{body_bytes} > $before }),
        'a part of a body has come');
}

$pg->pause;

for my $t ($a, $b) {
    ok(wait_until(30, sub { $t->get('/seen?url=http://base.test/0&times=1')
        ->{status} == 503 }), 'without the log, no times');
    is($t->get('/seen?url=http://base.test/0&older=1h')->{status}, 503,
        '  and nothing is due');
    $slow{$t}->piece("http://base.test/1\n");
    is($slow{$t}->end->{status}, 503, '  to a request from before, either');
    is($t->get('/seen?url=http://base.test/0')->{status}, 200,
        '  but what is known is answered');
}

$pg->resume;


sub state { ($_[0]->get('/health')->json // {})->{status} // '' }


sub promote
{
    my ($t) = @_;

    is($t->post('/cluster?promote', '', Accept => 'text/plain')->{status}, 200,
        'promoted');
}


# the one is the primary, and the other one has all that it has

sub both
{
    my ($p, $s) = @_;

    return ok(wait_until(30, sub {
        return 0 if state($p) ne 'ready' || state($s) ne 'standby';

        my ($x, $y) = map { $_->get('/stats')->json // {} } $p, $s;

        return ($y->{lag_bytes} // 1) == 0 && $x->{next_id} == $y->{next_id};
    }), 'a primary and its standby') || diag(state($p), state($s));
}


# new URLs, by the ids that come next

sub add
{
    my ($t, @urls) = @_;

    my $r = $t->post('/add', join('', map { "$_\n" } @urls), @text);

    is($r->{body}, join('', map { $next++ . "\tnew\t$_\n" } @urls),
        'the ids go on');
}


sub content
{
    my ($t) = @_;

    return join '', map { $t->post("/url$_", join('', map { "$_\n" }
        0 .. $next - 1), @text)->{body} } '', '?times=1';
}


sub same
{
    my ($p, $s, $what) = @_;

    both($p, $s);
    is($p->get('/stats')->json->{next_id}, $next, $what);
    is(content($s), content($p), '  and both have the same');
    unlike(content($p), qr/\t-\t/, '  all of it');
}


sub again
{
    my ($p, $s) = @_;

    for my $t ($p, $s) {
        $t->kill_all;
        $t->start;
    }

    wait_until(30, sub { state($p) =~ /ready/ || state($s) =~ /ready/ });
    ($p, $s) = ($s, $p) if state($s) eq 'ready';
    same($p, $s, 'after a start from the log');
    unlike($_->error_log, qr/damaged|the store has \d+ ids/,
        'nothing is damaged') for $p, $s;
}


# slow clients of the primary $p; then $change, after which $q is the primary,
# or $now; then the rest of their bodies

sub over
{
    my ($p, $q, $change, $what, $now) = @_;

    $now //= $q;
    $round++;

    my $was = $now == $p ? $q : $p;
    my @clients;

    for my $s (@slow) {
        my ($method, $path, $body) = @$s;
        my $c = UrlStore::Client->new('127.0.0.1', $p->port, timeout => 30);

        push @clients, $c;
        $c->begin($method, $path, @text);
        $c->piece(($body->())[0]);
        $next++ if $path =~ /add/;
        ok(wait_until(10, sub {
            $p->get('/stats')->json->{next_id} == $next }), "$what: $path");
    }

    # marks and claims give no id: what they change is confirmed before the next

    sleep 0.3;
    add($p, "http://between.test/$round");

    $change->();
    both($now, $was);
    same($now, $was, "$what: before the rest");

    my $before = content($p);

    $clients[$_]->piece(($slow[$_][2]->())[1]) for 0 .. $#slow;
    sleep 0.2;

    for my $i (0 .. $#slow) {
        my $r = $clients[$i]->end($i % 2);
        my $json = ($r && $r->json) // {};

        is($r->{status}, 503, "$what: $slow[$i][1] is refused");
        is($json->{processed}, 1, '  after what was done')
            or diag(explain($json));
    }

    is(content($p), $before, "$what: nothing was changed");
    add($now, map { "http://after.test/$round/$_" } 0 .. 3);
    same($now, $was, "$what: the ids of both nodes");
}
