#!/usr/bin/perl

# New bases of a replicated log: by command while clients go on, with standbys
# that are level, behind and new; given up by kills and promotions; damaged.

use strict;
use warnings;

use lib 't/lib';

use IO::Socket::INET;
use Time::HiRes qw(sleep time);

use UrlStore::Nodes;
use UrlStore::Postgres;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $top = $UrlStore::Test::TOP;
my $pg = UrlStore::Postgres->new->start;
my $n = UrlStore::Nodes->new($pg->conninfo, $pg->conninfo);
my @text = ('Content-Type' => 'text/plain');
my $next = 0;

$_->allow(qr/the log .*is tried again/, qr/all is read anew/,
    qr/no new base of the log was made/) for $n->nodes;
$n->conf('replicas=0 takeover=30s lease=1s marks=done,bad revisit=1h');
is($n->begin(sub { }), '', 'two nodes');

my ($a, $b) = $n->nodes;

($a, $b) = ($b, $a) if $pg->sql('SELECT holder FROM urlstore_shard') eq 'n1';


# --- the command

my $record = $n->{history}->writer;

add($a, 3000);

my @before = log_of();

$n->load(3, 1);

my ($out, $code) = command($a);

$n->unload;
is($code, 0, 'a base is made while clients go on');
like($out, qr/^0\tn[01]\t\d+\t\d+$/, '  which is reported')
    or diag($out);

my ($lsn, $bytes) = $out =~ /(\d+)\t(\d+)$/;
my @after = log_of();

cmp_ok($after[0], '>', $before[0], 'the rows begin later');
is($after[0], $pg->sql('SELECT next_lsn FROM urlstore_log WHERE lsn = -1'),
    '  at the place that the first one names');
cmp_ok($lsn, '>=', $after[0], '  up to which the base is');
is($pg->sql('SELECT count(DISTINCT base) FROM urlstore_base'), 1, 'one base');
is($pg->sql('SELECT base FROM urlstore_shard'), $pg->sql(
    'SELECT max(base) FROM urlstore_base'), '  which is in force');
is($a->stats->{rebases}, 1, 'it is counted');
is($a->stats->{log_base}, $after[0], '  and so is where the rows begin');
ok(wait_until(10, sub { $b->stats->{log_base} == $after[0] }),
    '  as the standby has it');
ok(level(), 'the standby is level');
unlike($b->error_log, qr/all is read anew/, '  and has read nothing again');
is($n->judge($a), '', 'nothing is lost, and each node reads the base');


# --- a standby whose last row a base has removed

primary();
stopped($b, sub {
    add($a, 1000) for 1 .. 6;
    is((command($a))[1], 0, 'a base, while the standby is stopped');
    add($a, 10);
});
ok(wait_until(20, sub {
    $b->error_log =~ /has a new base, .*all is read anew/ }),
    'it notices that its last row is not there any more');
ok(level(), '  and reads the base');


# --- what it cannot do

($out, $code) = command($b);
is($code, 1, 'a standby makes no base');
like($out, qr/409: no zone of this nginx is the primary of a shard/,
    '  with its reason');
is($b->post('/cluster?rebase=4096', '')->{status}, 400, 'no shard');
is($a->post('/cluster?rebase=7', '')->{status}, 409, 'a shard of others');


# --- a client that leaves

{
    my $held = $pg->hold('LOCK TABLE urlstore_base IN EXCLUSIVE MODE');
    my $left = sprintf ':%04X [0-9A-F]+:[0-9A-F]+ 08 ', $a->port; # CLOSE_WAIT
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1:' . $a->port);

    syswrite $s, "POST /cluster?rebase HTTP/1.1\r\nHost: a\r\n"
        . "Content-Length: 0\r\n\r\n";
    ok(wait_until(10, sub { waiting() }), 'a base is being made');
    close $s;
    sleep 0.3;
    ok(wait_until(5, sub { `cat /proc/net/tcp` !~ /$left/ }),
        'who has left waits for it no longer');
    my $count = $a->stats->{rebases};
    $held->end;
    ok(wait_until(10, sub { $a->stats->{rebases} > $count }),
        '  and it is made nevertheless');
}


# --- given up: by a kill of the worker that makes it

{
    my @was = log_of();
    my $base = $pg->sql('SELECT base FROM urlstore_shard');
    my $held = $pg->hold('LOCK TABLE urlstore_base IN EXCLUSIVE MODE');
    my $pid = in_background($a, 20);

    ok(wait_until(10, sub { waiting() }), 'a base is being made');
    add($a, 10);
    ok(wait_until(5, sub { (log_of())[1] > $was[1] }),
        'rows are appended meanwhile');
    $a->allow_kills;
    kill KILL => $a->worker_pids;
    $held->end;
    primary();
    waitpid $pid, 0;
    is($? >> 8, 0, 'the command goes on until there is a base');
    cmp_ok($pg->sql('SELECT base FROM urlstore_shard'), '>', $base,
        '  which is in force');
}

primary();
is($pg->sql('SELECT count(DISTINCT base) FROM urlstore_base'), 1,
    'nothing is left of the other one');


# by a promotion of the other node

{
    ok(level(), 'level');

    my @was = log_of();
    my $base = $pg->sql('SELECT base FROM urlstore_shard');
    my $held = $pg->hold('LOCK TABLE urlstore_base IN EXCLUSIVE MODE');
    my $pid = in_background($a, 3);

    ok(wait_until(10, sub { waiting() }), 'a base is being made');
    is($b->post('/cluster?promote', '')->{status}, 200, 'another primary');
    $held->end;
    waitpid $pid, 0;
    isnt($? >> 8, 0, 'no base is made');
    ok(wait_until(20, sub { state($a) eq 'standby' }),
        'the old primary follows');
    is((log_of())[0], $was[0], 'the rows are those that were there');
    is($pg->sql('SELECT base FROM urlstore_shard'), $base, '  and the base');
    ($a, $b) = ($b, $a);
    ok(level(), 'and it has them all');
}


# --- parts that are not what they were

is((command($a))[1], 0, 'a base');

my $part = 'base = (SELECT base FROM urlstore_shard) AND part = 0';

for my $damage ([ 'payload = set_byte(payload, 100, '
        . 'get_byte(payload, 100) # 1)', 'its CRC-32C is \w+, not \w+' ],
    [ 'part = 99', 'part 0 of the base is not there' ])
{
    my ($set, $why) = @$damage;

    $pg->sql('CREATE TABLE kept AS SELECT * FROM urlstore_base');
    $pg->sql("UPDATE urlstore_base SET $set WHERE $part");
    $b->kill_all;
    $b->start;
    ok(wait_until(20, sub { ($b->get('/health')->json->{reason} // '')
        =~ /$why/ }), "damaged: $set") or diag($b->get('/health')->{body});
    is($b->get('/url/0')->{status}, 503, '  nothing is answered');
    $pg->sql('DELETE FROM urlstore_base; INSERT INTO urlstore_base'
        . ' SELECT * FROM kept; DROP TABLE kept');
    ok(level(), 'whole again: it is read');
}

is($n->judge($a), '', 'in the end, all is there');


# --- marks, claims and deleted ids are in the base

primary();
$a->forget("/url/$_") for 10 .. 19;
is($a->post('/mark/done', join("\n", 20 .. 99) . "\n", @text)->{status}, 200,
    'marks');
$a->post('/mark/bad', "50\n", @text);
$a->post('/claim?at=1700000000', join("\n", 100 .. 199) . "\n", @text);

my $all = all($a);

like($all, qr/^100\t\S+\t1699/m, 'all of a store');
is((command($a))[1], 0, 'a base of it');
$b->kill_all;
$b->start;
ok(level(), 'a node loads it');
is($b->post('/cluster?promote', '')->{status}, 200, '  and is the primary');
is(all($b), $all, '  with all that there was');


sub add
{
    my ($t, $count) = @_;

    my $r = $record->add($t->client, map { 'http://h' . $_ % 50
        . ".rebase.test/$_" } $next + 1 .. $next + $count);

    $next += $count;
    is($r->{status}, 200, "$count URLs are added") or diag($r->{body});
}


# LSN of the first row, and how many there are

sub log_of
{
    return split /\|/, $pg->sql('SELECT min(lsn), count(*) FROM urlstore_log'
        . ' WHERE lsn >= 0');
}


sub command
{
    my ($t, $timeout) = @_;

    my $url = 'http://127.0.0.1:' . $t->port;
    my $out = `$top/build/urlstore cluster rebase --timeout @{[
        $timeout // 30]} $url 2>&1`;

    return ($out =~ s/\n\z//r, $? >> 8);
}


sub in_background
{
    my ($t, $timeout) = @_;

    my $pid = fork // die "fork: $!";

    if (!$pid) {
        my ($out, $code) = command($t, $timeout);
        POSIX::_exit($code);
    }

    return $pid;
}


sub waiting
{
    return $pg->sql("SELECT count(*) FROM pg_stat_activity WHERE"
        . " wait_event_type = 'Lock' AND query LIKE '%urlstore_base%'");
}


sub stopped
{
    my ($t, $code) = @_;

    my @pids = ($t->pid, $t->worker_pids);

    kill STOP => @pids;
    $code->();
    kill CONT => @pids;
}


sub state { return ($_[0]->get('/health')->json // {})->{status} // '' }
sub ready { return state($_[0]) eq 'ready' }


# one of them is the primary, and $a from now on

sub primary
{
    ok(wait_until(20, sub { ready($a) || ready($b) }), 'one is the primary');
    ($a, $b) = ($b, $a) if !ready($a);
}


# the standby has what the primary has confirmed

sub level
{
    return wait_until(30, sub {
        my ($p, $s) = map { $_->get('/stats')->json // {} } $a, $b;

        return ($s->{urls} // -1) == ($p->{urls} // -2)
            && $s->{lag_bytes} == 0 && state($b) eq 'standby';
    });
}


# what a primary lists: all with the time of their claim, and by mark

sub all
{
    my ($t) = @_;

    return join "--\n", map { $t->get("/urls?$_", Accept => 'text/plain')
        ->{body} } 'times=1', 'mark=done', 'mark=bad';
}
