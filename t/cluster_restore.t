#!/usr/bin/perl

# PostgreSQL is restored from a base backup, as docs/replicated-log.md has it:
# with all of its WAL the nodes go on; to an earlier point both notice what is
# missing, and the runbook's steps give each URL an id again.

use strict;
use warnings;

use lib 't/lib';

use UrlStore::Nodes;
use UrlStore::Postgres;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $pg = UrlStore::Postgres->new->archive->start;
my $n = UrlStore::Nodes->new($pg->conninfo, $pg->conninfo);
my @text = ('Content-Type' => 'text/plain');
my $next = 0;

$_->allow(qr/the log .*lost|is tried again/) for $n->nodes;
$n->conf('replicas=0 takeover=2s lease=1s');
is($n->begin(sub { }), '', 'two nodes');

my ($a, $b) = $n->nodes;

primary();


# --- a base backup, and all of the WAL

my $probes = add(1);

$pg->backup;
add(20);
$pg->stop('fast');
$pg->restore->start;
ok(wait_until(30, sub { state($a) eq 'ready' && state($b) eq 'standby' }),
    'restored to the latest point, nothing is missing');
add(20);
is($a->get("/url/$probes")->{status}, 200, '  and ids are as they were');
ok(same(), '  at both nodes');


# --- to a point before the last rows

$pg->backup;
add(10);
$pg->sql("SELECT pg_create_restore_point('here')");

my $kept = $a->stats->{next_id};

add(15) for 1 .. 2;
ok(same(), 'both nodes have them all');

my $lost = $a->stats->{next_id} - $kept;

$pg->stop('fast');
$pg->restore(recovery_target_name => 'here')->start;

ok(wait_until(30, sub { $a->error_log
    =~ /\[emerg\].*the log has lost the row of .*or this server/ }),
    'the primary notices');
ok(wait_until(30, sub { $b->error_log
    =~ /\[alert\].*the log does not continue at LSN \d+: its end is before/ }),
    'the standby notices');

diag(grep { /does not confirm|does not continue/ } map { "$_\n" }
    map { split /\n/, $_->error_log } $a, $b) if $ENV{US_SHOW};

for my $t ($a, $b) {
    is($t->get('/url/' . ($kept + $lost - 1))->{status}, 200,
        'what is missing is still answered');
    is($t->post('/add', "http://more.test/\n", @text)->{status}, 503,
        '  and nothing is added');
}

is(state($a), 'stalled', 'its state says so');
like($a->get('/health')->json->{reason} // '', qr/the log has lost the row of/,
    '  with the reason');
is($a->get('/metrics')->{body} =~ /^urlstore_stalled\S* (\d)/m ? $1 : '', 1,
    '  and its metrics');


# --- the runbook's commands, as they stand in docs/replicated-log.md

my ($text) = slurp('docs/replicated-log.md')
    =~ /^2\. Else save what a node .*?\n(.*?)^## /ms;
my @commands = $text =~ /^       (.*)$/mg;
my ($host, $router, $dir) = ($b->port, $n->router->port, $b->dir);
my $first;

is(scalar @commands, 3, 'the runbook has three commands');

for (@commands) {
    s{//HOST}{//127.0.0.1:$host};
    s{//ROUTER}{//127.0.0.1:$router};

    my $out = `cd $dir && PATH=$ENV{PWD}/build:\$PATH; $_ 2>err`;

    is("$?" . slurp("$dir/err"), '0', $_);
    is($out =~ tr/\n//, /add/ ? $lost : /forget/ ? 1 : 0, '  what it prints');

    if (/dump/) {
        my @lines = split /\n/, slurp("$dir/saved");

        $first = $lines[-1];
        is(join(' ', map { /^(\d+)\t/ } @lines), join(' ', 0 .. $#lines),
            '  all ids are saved');
        is(scalar @lines, $kept + $lost, '  and none is missing');

    } elsif (/forget/) {
        primary();
        is($b->port, $a->port == $host ? $b->port : 0,
            '  that node is the primary');
        is($a->stats->{next_id}, $kept, '  they have what was restored');
        is($a->stats->{epoch}, 2, '  with another epoch');
    }
}

like(`build/urlstore dump http://127.0.0.1:$router 2>&1`,
    qr/there is no "next_id": it is a router/, 'a router is not dumped');
is($? >> 8, 2, '  by its exit code');
is($a->stats->{next_id}, $kept + $lost, 'all URLs have ids again');
is($a->get('/url/' . ($kept + $lost - 1))->{body},
    $first =~ s/^\d+\t//r . "\n", '  without a gap');
ok(same(), 'both nodes have all of it');


sub state { return ($_[0]->get('/health')->json // {})->{status} // '' }


sub primary
{
    ok(wait_until(30, sub { state($a) eq 'ready' || state($b) eq 'ready' }),
        'one is the primary');
    ($a, $b) = ($b, $a) if state($a) ne 'ready';
}


# returns the id of the last one

sub add
{
    my ($count) = @_;

    my $r;

    wait_until(20, sub {
        $r = $a->post('/add', join('', map { "http://r.test/$_\n" } $next + 1
            .. $next + $count), @text);
        return $r->{status} == 200;
    });
    $next += $count;
    is($r->{status}, 200, "$count URLs are added");

    return (split /\t/, (split /\n/, $r->{body})[-1])[0];
}


sub same
{
    return wait_until(20, sub {
        my ($p, $s) = map { $_->get('/stats')->json // {} } $a, $b;

        return ($s->{next_id} // -1) == ($p->{next_id} // -2)
            && $s->{lag_bytes} == 0;
    });
}
