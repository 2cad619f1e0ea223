#!/usr/bin/perl

# The log in PostgreSQL (src/postgres): each function and each of its results,
# against real servers.  build/postgres/log is a program that calls them.

use strict;
use warnings;

use lib 't/lib';
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(sleep time);
use UrlStore::Postgres;
use UrlStore::Proxy;
use UrlStore::Test ();

my $PROGRAM = 'build/postgres/log';

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();
BAIL_OUT("no $PROGRAM: run make test-programs") if !-x $PROGRAM;

my $UUID = '000102030405060708090a0b0c0d0e0f';


# --- connection strings

for ([ 'hostaddr=127.0.0.1 port=1' => qr/^ok$/ ],
    [ 'host=/run/x dbname=y' => qr/^ok$/ ],
    [ 'host=::1,127.0.0.1 port=1,2' => qr/^ok$/ ],
    [ 'host=::1,127.0.0.1 port=1' => qr/^ok$/ ],
    [ 'host=a.example,b.example hostaddr=127.0.0.1,127.0.0.2' => qr/^ok$/ ],
    [ 'postgresql://u:p%40ss@127.0.0.1:5433/d?sslmode=require' => qr/^ok$/ ],
    [ 'password=very secret' => qr/is not valid: missing "\.\.\."/ ],
    [ "password='secret" => qr/is not valid: unterminated quoted string/ ],
    [ 'secret=1' => qr/is not valid: invalid connection option "\.\.\."$/ ],
    [ 'postgresql://u:secret@[::1/d' => qr/is not valid: .*"\.\.\."/ ],
    [ 'service=secret' => qr/has "service"/ ],
    [ 'host=db.example' => qr/a name: "db.example"; it needs "hostaddr"/ ],
    [ 'host=db hostaddr=db' => qr/"hostaddr" .* is no address: "db"/ ],
    [ 'host=::1 port=0' => qr/"port" .* is "0": 1 to 65535/ ],
    [ 'host=::1 port=5432x' => qr/"port" .* is "5432x"/ ],
    [ 'host=::1,::1,::1 port=1,2' => qr/has 3 "host", 0 .* and 2 "port"/ ],
    [ 'hostaddr=' . '::1,' x 16 . '::1' => qr/more than 16 hosts/ ])
{
    my ($conninfo, $answer) = @$_;

    open my $fh, '-|', $PROGRAM, 'check', $conninfo or die $!;
    my $got = <$fh> // '';
    close $fh;

    like($got, $answer, "check: $conninfo");
    unlike($got, qr/secret/, '  shows no value');
}


# --- one server

my $a = UrlStore::Postgres->new->start;
my $log = Log->new($a->conninfo, single => 1);

is($log->ask('head'), 'NONE', 'no log');
is($log->ask('row -1'), 'NONE', 'no row');
is($log->ask('read 0 100 9'), 'NONE', 'nothing to read');
is($log->ask('base 0'), 'NONE', 'no base');
like($log->ask('beat -1 0 0 0 0'), qr/^REFUSED/, 'nothing to renew');
like($log->ask('append -1 0 0 0 10 0 5 0 1'), qr/^REFUSED/, 'nor to append to');

is($log->ask("create $UUID \{\"a\":1}"), 'OK', 'create');
like($log->ask("create $UUID {}"), qr/^REFUSED/, 'once');
is($log->ask('head'), "$UUID settings={\"a\":1} term=0 holder= beat=0 acked=0 "
    . 'last=-1 0 0 0, OK', 'head');
is($log->ask('row -1'), '-1 0 0 0 empty, OK', 'the first row');

is($log->ask('promote -1 0 0 0 0 10 1 70 1 n1 s1'), 'beat=0, OK', 'promote');
is($log->ask('append 0 10 1 70 30 1 71 5 2'), 'OK', 'append');
is($log->ask('append 10 30 1 71 31 1 72 10 3'), 'OK', 'a row of 1 byte');
like($log->ask('head'), qr/ beat=0 acked=10 last=30 31 /,
    'a row reports what is confirmed');
is($log->ask('beat 30 31 1 72 30'), 'OK', 'beat');
is($log->ask('head'), "$UUID settings=s1 term=1 holder=n1 beat=1 acked=30 "
    . 'last=30 31 1 72, OK', 'head has them');

like($log->ask($_->[1]), qr/^REFUSED/, "append: $_->[0]") for
    [ 'twice', 'append 10 30 1 71 31 1 72 10 3' ],
    [ 'no such predecessor', 'append 31 40 1 72 41 1 72 0 1' ],
    [ 'predecessor that begins elsewhere', 'append 29 31 1 72 41 1 1 0 1' ],
    [ 'predecessor that ends elsewhere', 'append 30 32 1 72 41 1 1 0 1' ],
    [ 'predecessor of another CRC', 'append 30 31 1 73 41 1 1 0 1' ],
    [ 'predecessor of another term', 'append 30 31 2 72 41 2 1 0 1' ],
    [ 'another term than its predecessor', 'append 30 31 1 72 41 2 1 0 1' ],
    [ 'no bytes', 'append 30 31 1 72 31 1 1 0 1' ];

like($log->ask($_->[1]), qr/^REFUSED/, "beat: $_->[0]") for
    [ 'another term', 'beat 30 31 2 72 30' ],
    [ 'a row of an older term', 'beat -1 0 0 0 30' ],
    [ 'a row that is not there', 'beat 31 41 1 72 30' ],
    [ 'a row of another CRC', 'beat 30 31 1 73 30' ];

like($log->ask($_->[1]), qr/^REFUSED/, "promote: $_->[0]") for
    [ 'from another term', 'promote 30 31 1 72 0 41 2 73 1 n2 s' ],
    [ 'to the same term', 'promote 30 31 1 72 1 41 1 73 1 n2 s' ],
    [ 'not after the last row', 'promote 10 30 1 71 1 41 2 73 1 n2 s' ],
    [ 'after no row', 'promote 31 41 1 72 1 51 2 73 1 n2 s' ];

like($log->ask('head'), qr/ settings=s1 term=1 holder=n1 beat=1 /,
    'what is refused changes nothing');

is($log->ask('row 10'), '10 30 1 71 2:20, OK', 'row');
is($log->ask('row 11'), 'NONE', 'no row begins there');
is($log->ask('read 0 100 9'), '0 10 1 70 1:10, 10 30 1 71 2:20, '
    . '30 31 1 72 3:1, OK', 'read');
is($log->ask('read 29 100 9'), '10 30 1 71 2:20, 30 31 1 72 3:1, OK',
    'from the middle of a row');
is($log->ask('read 10 1 9'), '10 30 1 71 2:20, OK', 'a limit');
is($log->ask('read 0 100 1'), '0 10 1 70 1:10, OK', 'until the reader has it');
is($log->ask('read 31 100 9'), 'NONE', 'past the end');
is($log->ask('read 9223372036854775807 100 9'), 'NONE', 'far past it');

# another shard has its own

my $other = Log->new($a->conninfo, single => 1, shard => 4095);

is($other->ask('head'), 'NONE', 'another shard has no log');
is($other->ask("create $UUID {}"), 'OK', 'create');
like($log->ask('head'), qr/ last=30 31 1 72, OK/, 'each has its own');

# a new term fences the old one

my $second = Log->new($a->conninfo, single => 1);

is($second->ask('promote 30 31 1 72 1 41 2 73 4 n2 s2'), 'beat=1, OK',
    'another node promotes');
like($log->ask('append 30 31 1 72 41 1 73 0 1'), qr/^REFUSED/,
    'the old primary appends no more');
like($log->ask('beat 30 31 1 72 0'), qr/^REFUSED/, 'nor renews');
like($log->ask('promote 30 31 1 72 1 41 3 73 1 n1 s'), qr/^REFUSED/,
    'nor promotes from its own term');
is($log->ask('row 31'), '31 41 2 73 4:10, OK', 'and reads why');

# two connections, one LSN: one of them has it, the other is refused

{
    my ($first, $won, $lost, @last) = (0, 0, 0, 31, 41, 2, 73);

    for my $i (1 .. 50) {
        my $next = $last[1] + 10;

        $_->tell("append @last $next 2 $i 0 $i") for $log, $second;

        my @got = map { $_->answer } $log, $second;

        $won += grep { $_ eq 'OK' } @got;
        $lost += grep { /^REFUSED/ } @got;
        @last = ($last[1], $next, 2, $i);
    }

    is("$won $lost", '50 50', 'two appends after one row: one is there');

    # the same with a promotion

    my $term = 2;
    ($won, $lost) = (0, 0);

    for my $i (1 .. 30) {
        my $next = $last[1] + 10;
        my $new = $term + 1;

        $log->tell("append @last $next $term $i 0 $i");
        $second->tell("promote @last $term $next $new $i $i n s");

        my @got = ($log->answer, $second->answer);

        $won += grep { /OK$/ } @got;
        $lost += grep { /^REFUSED/ } @got;
        $term = $new if $got[1] =~ /OK$/;
        @last = ($last[1], $next, $term, $i);
    }

    is("$won $lost", '30 30', 'an append and a promotion: one is there');
    like($log->ask('head'), qr/ term=$term .* last=@last, OK/,
        'and the chain is whole');
}


# --- a new base

my ($term, @end) = $log->ask('head')
    =~ / term=(\d+) .* last=(\d+) (\d+) (\d+) (\d+),/;
my $before = $a->sql('SELECT term, crc32c FROM urlstore_log WHERE shard = 7'
    . " AND next_lsn = $end[0]") =~ tr/|/ /r;

is($log->ask("part $term 0 100 1"), 'OK', 'a part of a base');
is($log->ask("part $term 1 200 2"), 'OK', 'and another');
is($second->ask('base 0'), 'NONE', 'which is not in force yet');
like($log->ask("rebase $term $end[1] $end[1] 3"), qr/^REFUSED/,
    'a part is missing');
like($log->ask("rebase 1 $end[1] $end[1] 2"), qr/^REFUSED/, 'another term');
like($log->ask("rebase $term 0 " . ($end[1] + 1) . ' 2'), qr/^REFUSED/,
    'past the last row');
like($log->ask("rebase $term 0 0 2"), qr/^REFUSED/, 'of nothing');
like($log->ask('part 1 2 10 1'), qr/^REFUSED/, 'a part of another term');
like($second->ask("part $term 1 10 1"), qr/^REFUSED/,
    'a part of what another process makes');
is($log->ask("part $term 1 300 3"), 'OK', 'a part once more');
is($log->ask("rebase $term $end[1] $end[1] 2"), 'OK', 'in force');
like($log->ask("rebase $term $end[1] $end[1] 2"), qr/^REFUSED/, 'once');
like($log->ask('head'), qr/ last=@end, OK/, 'the last row stays');
is($log->ask('row -1'), "-1 $end[0] $before empty, OK",
    'the first one has what the row before it had');
is($second->ask('base 0'), '-1 0 0 0 1:100, OK', 'its first part');
is($second->ask('base 1'), '-1 0 0 0 3:300, OK', 'its second');
is($second->ask('base 2'), 'NONE', 'and no more');

# what is of no use is removed in pieces, from the lowest LSN on

my $many = Log->new($a->conninfo, single => 1, shard => 8);

$many->ask("create $UUID s");
$a->sql("INSERT INTO urlstore_log SELECT 8, n, n + 1, 0, 0, 0, ''"
    . ' FROM generate_series(0, 299) n;'
    . 'UPDATE urlstore_log SET next_lsn = 299 WHERE shard = 8 AND lsn = -1');
is($many->ask('trim'), 'OK', 'trim');
is($a->sql('SELECT min(lsn), count(*) FROM urlstore_log WHERE shard = 8'
    . ' AND lsn >= 0'), '256|44', 'a piece of the rows');
$a->sql("INSERT INTO urlstore_log VALUES (8, 7, 8, 0, 0, 0, '')");
is($many->ask('trim'), 'OK', 'another one');
is($a->sql('SELECT min(lsn) FROM urlstore_log WHERE shard = 8 AND lsn >= 0'),
    7, 'which does not walk the rows before it again');
$a->sql('DELETE FROM urlstore_log WHERE shard = 8 AND lsn = 7');
like($many->ask('trim'), qr/^NONE/, 'nothing is left');
is($a->sql('SELECT min(lsn), count(*) FROM urlstore_log WHERE shard = 8'
    . ' AND lsn >= 0'), '299|1', 'but rows from the base on');

1 while $log->ask('trim') eq 'OK';
is($log->ask('read 0 100 9'), 'NONE', 'the rows are gone');
is($log->ask('row 0'), 'NONE', 'also the first one');
like($log->ask("row $end[0]"), qr/^@end .*OK$/, 'not the last one');

my @next = ($end[1], $end[1] + 10, $term, 5);

is($log->ask("append @end $next[1] $term 5 1000 1"), 'OK', 'rows follow it');

# rows before a base may stay, but not fewer than there are

is($log->ask("part $term 0 40 7"), 'OK', 'a base that keeps rows');
is($log->ask("rebase $term 0 $next[1] 1"), 'OK', 'in force');
is($log->ask('row -1'), "-1 $end[0] $before empty, OK", 'no row is gone');
is($log->ask("part $term 0 100 1"), 'OK', 'a base');
is($log->ask("part $term 1 300 3"), 'OK', '  of two parts');
is($log->ask("rebase $term 0 $next[1] 2"), 'OK', 'in force');

is($log->ask("part $term 0 50 7"), 'OK', 'the next base is begun');
is($second->ask('base 0'), '-1 0 0 0 1:100, OK', 'the first one is read');
is($log->ask("part $term 0 60 8"), 'OK', 'begun again');
is($log->ask("rebase $term $next[1] " . ($next[1] - 1) . ' 1') =~ s/ .*//r,
    'REFUSED', 'not without rows past it');
is($log->ask("rebase $term " . "@{[ ($next[1] - 1) x 2 ]} 1"), 'OK',
    'in force, up to within a row');
is($log->ask('row -1'), "-1 $end[1] $end[2] $end[3] empty, OK",
    'which stays whole');
like($second->ask('base 1'), qr/^REFUSED the base was replaced/,
    'a reader between two parts has to begin again');
is($second->ask('base 0'), '-1 0 0 0 8:60, OK', 'which it can');
1 while $log->ask('trim') eq 'OK';
is($a->sql('SELECT count(*) FROM urlstore_base WHERE shard = 7'), 1,
    'nothing else is left');
is($log->ask("part $term 0 60 8"), 'OK', 'another one');
like($log->ask("rebase $term $end[1] $end[1] 1"), qr/^REFUSED/,
    'not as of a place at which no rows are any more');
is($log->ask('row -1'), "-1 @end[1, 2, 3] empty, OK", 'but the first row');
like($log->ask("row $next[0]"), qr/^@next 1:10, OK/, 'and those after it');

# the base of a log that has no rows: its first term follows that

my $empty = Log->new($a->conninfo, single => 1, shard => 9);

is($empty->ask("create $UUID s"), 'OK', 'an empty log');
is($empty->ask('part 0 0 10 1'), 'OK', 'a base of it');
is($empty->ask('rebase 0 500 500 1'), 'OK', 'in force');
like($empty->ask('head'), qr/ last=-1 500 0 0, OK/, 'the chain begins there');
like($empty->ask('promote -1 0 0 0 0 10 1 70 1 n1 s1'), qr/^REFUSED/,
    'a term does not begin at 0');
is($empty->ask('promote -1 500 0 0 0 510 1 70 1 n1 s1'), 'beat=0, OK',
    'but past the base');

# a base and the first term of a log at once: one of them is there

for my $shard (100 .. 119) {
    my @both = map { Log->new($a->conninfo, single => 1, shard => $shard) }
        0, 1;

    $both[0]->ask("create $UUID s");
    $both[0]->ask('part 0 0 10 1');
    $both[0]->tell('rebase 0 500 500 1');
    $both[1]->tell('promote -1 0 0 0 0 10 1 70 1 n1 s1');

    my @got = map { $_->answer } @both;
    my @row = split /\|/, $a->sql("SELECT count(*), max(lsn), "
        . "min(next_lsn) FROM urlstore_log WHERE shard = $shard");

    is("@row", $got[0] eq 'OK' ? '1 -1 500' : '2 0 0',
        "shard $shard: $got[0], $got[1]");
    $_->kill for @both;
}

# a late append meets a new base: it is held between its look at the row before
# it and its own row, by a row of somebody else that is undone

is($log->ask("part $term 0 70 9"), 'OK', 'a base');

my @late = ($next[1], $next[1] + 10, $term, 6);
my $other_row = $a->hold('INSERT INTO urlstore_log VALUES'
    . " (7, $late[0], $late[1], 0, 0, 0, '')");

$second->tell("append @next $late[1] $term 6 2000 1");
wait_for(sub { blocked() == 1 }, 'an append waits');
$log->tell("rebase $term $next[1] $next[1] 1");
wait_for(sub { blocked() == 2 }, 'the new base waits for it');
$other_row->end;
is($second->answer, 'OK', 'it is there');
is($log->answer, 'OK', 'and the base after it');
is($a->sql('SELECT count(*) FROM urlstore_log WHERE shard = 7 AND lsn >= 0'),
    2, 'with the row before it');

@end = @late;


# --- long rows

{
    my $max = 64 * 1024 * 1024;
    my $next = $end[1] + $max;

    my ($session) = $log->ask('session') =~ /^(\d+)/;

    $log->ask('timeout 20000');
    $log->ask('look 20000');
    my @long = ($end[1], $next, $term, 6);

    is($log->ask("append @end $next $term 6 2000 9"), 'OK', 'a row of 64 MiB');
    is($log->ask("row $end[1]"), "@long 9:$max, OK", 'is read back');
    like($log->ask("append @long " . ($next + 129 * 1024 * 1024)
        . " $term 6 0 1"), qr/^REFUSED/, 'one of 129 MiB is not sent');
    is($log->ask("beat @long 0"), 'OK', 'beat');
    is($log->ask('session'), $session + 2 . ', OK',
        'a connection with a buffer of that size is not kept');

    # a commit that fails after the row was inserted

    $a->sql('CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql'
        . " AS 'BEGIN RAISE EXCEPTION ''no''; END';"
        . ' CREATE CONSTRAINT TRIGGER late AFTER INSERT ON urlstore_log'
        . ' DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION no()');
    like($log->ask("append @long " . ($next + 1) . " $term 7 0 1"),
        qr/^UNKNOWN no$/, 'a commit that fails is unknown');
    $a->sql('DROP TRIGGER late ON urlstore_log; DROP FUNCTION no()');
    is($log->ask("row $next"), 'NONE', 'although here nothing was done');
}


# --- what a server may lack

{
    my $wrong = Log->new($a->conninfo(password => 'my secret'));

    like($wrong->ask('head'), qr/^BAD .*password authentication failed/,
        'a wrong password');
    unlike($wrong->{last}, qr/secret|LOCATION/, 'is not shown');

    like(Log->new($a->conninfo(db => 'none'))->ask('head'),
        qr/^BAD .*database "none" does not exist/, 'no database');
    like(Log->new($a->conninfo(db => 'postgres'))->ask('head'),
        qr/^BAD relation "urlstore_\w+" does not exist.*urlstore-schema.sql/,
        'no tables');

    # a password that the server's text has

    $a->sql("CREATE ROLE hunter2");
    like(Log->new($a->conninfo(user => 'hunter2', password => 'hunter2'))
        ->ask('head'), qr/^BAD .*user "\*{7}"/,
        'a password that is in a message is blotted out');
    $a->sql('CREATE ROLE a');
    like(Log->new($a->conninfo(user => 'a', password => 'a'))
        ->ask('head'), qr/^BAD .*authentication failed for user "\*"$/,
        'one of a letter only where it is a word');

    $a->sql('REVOKE UPDATE ON urlstore_shard FROM urlstore');
    my $poor = Log->new($a->conninfo, single => 1);
    like($poor->ask('head'), qr/^BAD .* lacks rights: UPDATE on urlstore_shard/,
        'no right');
    like($log->ask('beat -1 2000 1 0 0'), qr/^BAD permission denied/,
        'nor one that it had');
    $a->sql('GRANT UPDATE ON urlstore_shard TO urlstore');
    like($poor->ask('head'), qr/OK$/, 'granted, it goes on');

    $a->sql('CREATE OR REPLACE VIEW urlstore_schema AS SELECT 2 AS version');
    like(Log->new($a->conninfo)->ask('head'),
        qr/^BAD the tables have version 2: this module needs version 1/,
        'tables of another version');
    $a->sql('CREATE OR REPLACE VIEW urlstore_schema AS SELECT 1 AS version');

    $a->sql('REVOKE pg_read_all_stats FROM urlstore');
    my $blind = Log->new($a->conninfo, shard => 4095);
    like($blind->ask('head'), qr/^BAD .* cannot see what the standbys have: /,
        'no right to see the standbys');
    like(Log->new($a->conninfo, single => 1)->ask('head'), qr/OK$/,
        'which is not needed with one server');
    $a->sql('GRANT pg_read_all_stats TO urlstore');
    like($blind->ask('head'), qr/OK$/, 'granted, it goes on');

    like($blind->ask("promote -1 0 0 0 0 10 1 70 1 n1 s1"),
        qr/^UNKNOWN "synchronous_standby_names".*is empty/, 'no standby');
    is(Log->new($a->conninfo, single => 1, shard => 4095)
        ->ask('beat 0 10 1 70 0'), 'OK', 'but one server has it');
}


# --- a standby

$a->set(synchronous_standby_names => 'b');

my $stream = UrlStore::Proxy->new($a->port);
my $b = $a->standby('b')->through($stream->port)->start;
my $proxy = UrlStore::Proxy->new($a->port);
my $p1 = Log->new($a->conninfo, shard => 1);
my $p2 = Log->new($a->conninfo, shard => 1);
my $far = Log->new($a->conninfo(port => $proxy->port), shard => 1);
my $both = Log->new($a->conninfo(hosts => [ $b, $a ]), shard => 1);

like(Log->new($b->conninfo)->ask('head'), qr/^AWAY .*read-only/,
    'a server that only reads');
$a->set(work_mem => '5MB');
is($p1->ask("create $UUID {}"), 'OK',
    'create, at once after the configuration was read');
is($p1->ask('promote -1 0 0 0 0 10 1 70 1 n1 s1'), 'beat=0, OK', 'promote');
is($p1->ask('append 0 10 1 70 20 1 71 10 2'), 'OK', 'append');
is($b->sql('SELECT max(lsn) FROM urlstore_log WHERE shard = 1'), 10,
    'the standby has it');
is($both->ask('beat 10 20 1 71 20'), 'OK', 'of two hosts, that which writes');

# the answer of a commit is swallowed

is($far->ask('beat 10 20 1 71 20'), 'OK', 'through a proxy');
$far->ask('timeout 300');
$proxy->now('swallow');

my $start = time;

like($far->ask('append 10 20 1 71 30 1 72 20 3'), qr/^UNKNOWN .*in time/,
    'no answer');
cmp_ok(time - $start, '<', 1, 'in 0.3 s');
is($p1->ask('row 20'), '20 30 1 72 3:10, OK', 'but the row is there');
like($far->ask('beat 20 30 1 72 20'), qr/^AWAY/, 'no connection either');
$proxy->mode('pass');
$far->ask('timeout 2000');
is($far->ask('session'), '1, OK', 'the first session');
is($far->ask('beat 20 30 1 72 20'), 'OK', 'a connection again');
is($far->ask('beat 20 30 1 72 20'), 'OK', 'which stays');
is($far->ask('session'), '2, OK', 'the second one');
$proxy->mode('refuse');
like($far->ask('beat 20 30 1 72 20'), qr/^AWAY/, 'a closed one is noticed');
$proxy->mode('pass');

# a call that only reads gives a server that hangs up by a time of its own

$far->ask('timeout 20000');
$far->ask('look 300');

for my $call ('head', 'row 20', 'read 0 100 9', 'base 0') {
    $proxy->mode('pass');
    wait_for(sub { $far->ask('row 20') =~ /OK$/ }, 'a connection');
    $proxy->now('hang');
    $start = time;
    like($far->ask($call), qr/^AWAY .*in time/, "no answer to $call");
    cmp_ok(time - $start, '<', 1, '  in 0.3 s');
}

$proxy->mode('pass');

# a machine that is gone: nobody accepts or refuses a connection

{
    my $full = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1)
        or die "listen: $!";
    my @queue = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $full->sockport, Blocking => 0) } 1 .. 8;
    my $gone = Log->new($a->conninfo(hosts => [ $a, $a ],
        ports => [ $full->sockport, $a->port ]), shard => 1);

    sleep 0.1;
    $gone->ask('look 20000');
    $start = time;
    like($gone->ask('row 20'), qr/OK$/, 'of two hosts one is gone');
    cmp_ok(time - $start, '>', 1.9, '  it is waited for');
    cmp_ok(time - $start, '<', 2 + 2 * UrlStore::Test::longer(), '  2 s');

    $gone = Log->new($a->conninfo(hosts => [ $a, $a ],
        ports => [ $full->sockport, $a->port ]) . ' connect_timeout=1',
        shard => 1);
    $gone->ask('look 20000');
    $start = time;
    like($gone->ask('row 20'), qr/OK$/, 'connect_timeout=1');
    cmp_ok(time - $start, '<', 1 + .9 * UrlStore::Test::longer(), '  1 s');

    my $slow = " options='-c post_auth_delay=3'";

    $gone = Log->new($a->conninfo =~ s/ connect_timeout=\d+//r . $slow,
        shard => 1);
    like($gone->ask('row 20'), qr/AWAY/, 'a server that takes 3 s to connect');
    $gone = Log->new($a->conninfo . "$slow connect_timeout=20", shard => 1);
    like($gone->ask('row 20'), qr/OK$/, '  with connect_timeout=20');
}

# one that goes while it is connected is noticed by the kernel, which asks after
# a second without a byte: /proc/net/tcp has the timer (02) of the connection

{
    my $far = sprintf '0100007F:%04X', $a->port;

    like($p1->ask('row 20'), qr/OK$/, 'a connection');
    open my $fh, '<', '/proc/net/tcp' or die $!;
    my @timer = map { / \Q$far\E 01 \S+ (\d\d):([0-9A-F]{8}) / ? "$1 " . hex $2
        : () } <$fh>;
    my @kept = map { /^02 (\d+)$/ ? $1 : () } @timer;

    cmp_ok(scalar @kept, '>', 0, 'is kept alive');
    is(scalar(grep { $_ > 100 } @kept), 0, '  by a question each second');
}

# a thread that is to end does not wait

is($far->ask('beat 20 30 1 72 20'), 'OK', 'a connection again');
$proxy->now('hang');
$far->ask('stop 100');
$start = time;
like($far->ask('beat 20 30 1 72 20'), qr/^UNKNOWN .*stopping/, 'stopping');
cmp_ok(time - $start, '<', 1, 'at once');
like($far->ask('beat 20 30 1 72 20'), qr/^AWAY .*stopping/,
    'nor for a connection');

# the standby is away: a stall, and nothing is cancelled

$b->pause;
$p1->ask('timeout 300');
like($p1->ask('append 20 30 1 72 40 1 73 30 4'), qr/^UNKNOWN .*in time/,
    'the standby is away');
is($p1->ask('row 30'), 'NONE', 'the row is not visible');
is(waiting(), 1, 'the statement still waits');
like($p2->ask('row 20'), qr/OK$/, 'reading goes on');

# no other change is sent while that one may still come

like($p1->ask('beat 20 30 1 72 20'),
    qr/^AWAY waits for a synchronous standby \(syn\w+ = "b"\)/,
    'what it waits for') for 1 .. 3;
is($a->sql("SELECT count(*) FROM pg_stat_activity"
    . " WHERE wait_event IN ('SyncRep', 'tuple', 'transactionid')"), 1,
    'one session waits');
$b->resume;
wait_for(sub { $p1->ask('row 30') eq '30 40 1 73 4:10, OK' },
    'later it is there');
is($p1->ask('beat 30 40 1 73 30'), 'OK', 'and confirmed by the next commit');

$b->pause;
$p1->ask('timeout 20000');
$p1->ask('look 100');
$p1->tell('beat 30 40 1 73 30');
sleep 0.3;
$b->resume;
is($p1->answer, 'OK', 'a commit may take longer than a look');
$p1->ask('look 5000');

# a beat that waits for the standby: its primary lives, and no other node begins
# a term

$b->pause;
$p1->ask('timeout 5000');
$p1->tell('beat 30 40 1 73 30');
wait_for(sub { $a->sql("SELECT count(*) FROM pg_stat_activity"
    . " WHERE wait_event = 'SyncRep'") }, 'a beat waits');
like($p2->ask('promote 30 40 1 73 1 50 2 74 1 n2 s2'),
    qr/^AWAY the primary's beat waits/, 'a claim does not');
$b->resume;
is($p1->answer, 'OK', 'the beat is confirmed');
is($a->sql('SELECT term FROM urlstore_shard WHERE shard = 1'), 1,
    'in the same term');

# of two standbys one is enough

my $c = $a->standby('c')->start;

$a->set(synchronous_standby_names => 'ANY 1 (b, c)');
$p1->ask('timeout 5000');
wait_for(sub { $a->sql("SELECT count(*) FROM pg_stat_replication"
    . " WHERE sync_state = 'quorum'") == 2 }, 'two standbys');
$b->pause;
is($p1->ask('beat 30 40 1 73 30'), 'OK', 'three servers, one is away');
$c->pause;
$p1->ask('timeout 300');
like($p1->ask('beat 30 40 1 73 30'), qr/^UNKNOWN/, 'two are away');
$b->resume;
wait_for(sub { $p1->ask('beat 30 40 1 73 30') eq 'OK' }, 'the other one');
$c->resume->stop('immediate');
$a->set(synchronous_standby_names => 'b');

# a client that is killed: its statement commits nonetheless

$b->pause;
$far = Log->new($a->conninfo, shard => 1);
$far->tell('append 30 40 1 73 50 1 74 40 5');
wait_for(sub { waiting() }, 'a commit waits');
$far->kill;
is($p1->ask('row 40'), 'NONE', 'the killed client\'s row is not visible');
$p1->tell('append 30 40 1 73 60 1 75 40 6');
sleep 0.1;
$b->resume;
like($p1->answer, qr/^(?:UNKNOWN|REFUSED)/, 'an append of its successor waits');
wait_for(sub { $p1->ask('row 40') eq '40 50 1 74 5:10, OK' },
    'the killed client\'s row is there');
like($p1->ask('append 30 40 1 73 60 1 75 40 6'), qr/^REFUSED/, 'and fences');

# a wait that is cancelled: committed here, and nowhere else

my $waits = qr/^UNKNOWN waits for a synchronous standby \(syn\w+ = "b"\)/;

$b->pause;
$p1->ask('timeout ' . 1000 * UrlStore::Test::longer());
$p1->tell('append 40 50 1 74 60 1 75 50 6');
wait_for(sub { waiting() }, 'a commit waits');
$a->sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
    . " WHERE wait_event = 'SyncRep'");
like($p1->answer, $waits, 'a cancelled wait is unknown');
is($p1->ask('row 50'), '50 60 1 75 6:10, OK', 'although the row is there');
$b->resume;
is($p1->ask('beat 50 60 1 75 50'), 'OK', 'the next commit confirms it');

# the names are emptied during a wait: PostgreSQL ends the wait as if the
# standby had answered

$b->pause;
$p1->tell('append 50 60 1 75 70 1 76 60 7');
wait_for(sub { waiting() }, 'a commit waits');
$a->set(synchronous_standby_names => '');
like($p1->answer, qr/^UNKNOWN .*is empty/,
    'an emptied list of standbys is no confirmation');
like($p1->ask('beat 60 70 1 76 60'), qr/^UNKNOWN .*is empty/, 'nor later');

# the names are set again, but commits wait for a standby only when the
# checkpointer has read them, and it is busy

my ($checkpointer) = $a->sql("SELECT pid FROM pg_stat_activity"
    . " WHERE backend_type = 'checkpointer'");

kill STOP => $checkpointer;
$a->set(synchronous_standby_names => 'b');
sleep 0.6;
like($p1->ask('beat 60 70 1 76 60'), $waits,
    'a commit that did not wait is no confirmation');
is($a->sql("SELECT count(*) FROM pg_stat_activity"
    . " WHERE wait_event = 'SyncRep'"), 0, '  it has returned');
$b->resume;
wait_for(sub { $p1->ask('beat 60 70 1 76 60') eq 'OK' },
    'the standby has it: it is');
kill CONT => $checkpointer;
$p1->ask('timeout 5000');

# while another client writes without end, the server's end is past the commit

{
    $a->sql('CREATE TABLE noise (n int)');

    my $noise = fork // die "fork: $!";

    if (!$noise) {
        eval { $a->sql("DO \$\$ BEGIN PERFORM set_config("
            . "'synchronous_commit', 'off', false); LOOP"
            . ' INSERT INTO noise SELECT generate_series(1, 50); COMMIT;'
            . ' END LOOP; END $$') };
        POSIX::_exit(0);
    }

    wait_for(sub { $a->sql('SELECT count(*) > 100 FROM noise') eq 't' },
        'others write');
    is(scalar(grep { $p1->ask('beat 60 70 1 76 60') eq 'OK' } 1 .. 50), 50,
        'a commit among those of others');
    $a->sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        . " WHERE query LIKE '%INTO noise%' AND pid <> pg_backend_pid()");
    waitpid $noise, 0;
    $a->sql('DROP TABLE noise');
}

# what counts as a standby for PostgreSQL, but cannot take the server's place

{
    my $copy = UrlStore::Postgres->new(name => 'copy',
        wal_level => 'logical')->start;
    my $of = UrlStore::Postgres->new(name => 'of')->start;
    my $l = Log->new($copy->conninfo, shard => 1);

    $copy->sql('CREATE PUBLICATION p FOR ALL TABLES');
    $of->sql("CREATE SUBSCRIPTION copy CONNECTION '" . $copy->_admin
        . "' PUBLICATION p WITH (copy_data = off)");
    $copy->set(synchronous_standby_names => 'copy');
    is($copy->sql("INSERT INTO urlstore_base VALUES (0, 0, 0, '') RETURNING 1"),
        1, 'PostgreSQL confirms what a subscriber has');
    like($l->ask("create $UUID {}"),
        qr/^UNKNOWN waits for a synchronous .*copy/, 'a subscriber is none');
    is($copy->sql('SELECT sync_state FROM pg_stat_replication'), 'sync',
        '  although it is synchronous');
    $of->stop('immediate');

    my $in = $copy->receive('copy');

    wait_for(sub { $copy->sql('SELECT sync_state FROM pg_stat_replication')
        eq 'sync' }, 'pg_receivewal is synchronous');
    like($l->ask('beat -1 0 0 0 0'),
        qr/^UNKNOWN waits for a synchronous .*copy/, 'nor is pg_receivewal');
    kill TERM => $in;
    waitpid $in, 0;
    $copy->stop('immediate');
}


# an immediate stop during the wait: unknown, and visible after the start

$b->pause;
$p1->tell('append 60 70 1 76 80 1 77 70 8');
wait_for(sub { waiting() }, 'a commit waits');
$a->stop('immediate');
like($p1->answer, qr/^UNKNOWN .*lost/, 'an immediate stop');
like($p1->ask('head'), qr/^AWAY/, 'no server');
$a->start;
$b->resume;
wait_for(sub { $p1->ask('row 70') eq '70 80 1 77 8:10, OK' },
    'the row is there after the start');


# of several reasons, that of a server which only reads counts last

for my $ports ([ 1, $b->port ], [ $b->port, 1 ]) {
    like(Log->new($a->conninfo(hosts => [ $a, $b ], ports => $ports))
        ->ask('head'), qr/^AWAY .*port 1 failed: Connection refused/,
        'the reason is that of the server which is gone');
}


# --- two primaries: the old one is writable, but has no standby any more

{
    my $x = UrlStore::Postgres->new(name => 'x')->start;
    my $y = $x->standby('y')->start;
    my $l = Log->new($x->conninfo(hosts => [ $x, $y ]), shard => 1);
    my $one = Log->new($x->conninfo(hosts => [ $x, $y ]), shard => 1,
        single => 1);

    is($one->ask("create $UUID {}"), 'OK', 'a log');
    is($one->ask('promote -1 0 0 0 0 10 1 70 1 n1 s1'), 'beat=0, OK', 'a term');
    wait_for(sub { $y->sql('SELECT max(lsn) FROM urlstore_log') eq '0' },
        'at both');
    $y->promote;
    my $z = $y->standby('z')->start;
    $x->set(synchronous_standby_names => 'y');
    $y->set(synchronous_standby_names => 'z');
    $l->ask('timeout 500');
    like($l->ask('beat 0 10 1 70 0'), qr/^UNKNOWN/, 'the old one: unknown');
    $l->ask('timeout 5000');
    is($l->ask('beat 0 10 1 70 0'), 'OK', 'the next one is made at the other');
    $y->sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        . " WHERE usename = 'urlstore'");
    wait_for(sub { !$y->sql("SELECT count(*) FROM pg_stat_activity"
        . " WHERE usename = 'urlstore'") }, 'the session is ended');
    is($l->ask('beat 0 10 1 70 0'), 'OK', 'so is the one after that');
    $z->pause;
    $l->ask('timeout 500');
    like($l->ask('beat 0 10 1 70 0'), qr/^UNKNOWN/, 'not confirmed there');
    $z->resume;
    $l->ask('timeout 5000');
    wait_for(sub { $l->ask('beat 0 10 1 70 0') eq 'OK' },
        'it does not go back to the lower timeline');
    is($x->sql('SELECT beat FROM urlstore_shard'), 0, 'the old one has none');
    is($y->sql('SELECT beat > 2 FROM urlstore_shard'), 't', 'the other has');
    is($x->sql("SELECT count(*) FROM pg_stat_activity"
        . " WHERE wait_event = 'SyncRep'"), 1, 'one session waits there');

    # the other one is gone: what there is is used, after a call without any

    $_->stop('immediate') for $y, $z;
    like($l->ask('row 0'), qr/^AWAY /, 'the newer one is gone');
    is($l->ask('row 0'), '0 10 1 70 1:10, OK', 'then what there is is read');
    $x->stop('immediate');
}


# --- the standby is promoted: what was confirmed is there, the old server ends

wait_for(sub { $p1->ask('beat 70 80 1 77 70') eq 'OK' }, 'all is confirmed');
$stream->now('hang');
$p1->ask('timeout 300');
like($p1->ask('append 70 80 1 77 90 1 78 80 9'), qr/^UNKNOWN/, 'unconfirmed');
$a->stop('kill');
$b->set(synchronous_standby_names => 'a');
$b->promote;
is($both->ask('row 70'), '70 80 1 77 8:10, OK',
    'a confirmed row is on the promoted server');
like($both->ask('row 80'), qr/^NONE/, 'the unconfirmed one is not');
$both->ask('timeout 300');
like($both->ask('promote 70 80 1 77 1 95 2 79 10 n2 s2'), qr/^UNKNOWN/,
    'without a standby of its own nothing is confirmed');
$b->sql('CHECKPOINT');               # which pg_rewind reads
$a->follow($b);
$both->ask('timeout 2000');
wait_for(sub { $both->ask('row 80') eq '80 95 2 79 10:15, OK' },
    'the old server streams, the new term is there');
wait_for(sub { $both->ask('beat 80 95 2 79 80') eq 'OK' }, 'and confirmed');
is($a->sql('SELECT max(term) FROM urlstore_log WHERE shard = 1'), 2,
    'on both servers');

is(Log::end(), 0, 'no report of a sanitizer');

done_testing();


sub blocked
{
    return $a->sql("SELECT count(*) FROM pg_stat_activity"
        . " WHERE wait_event_type = 'Lock'");
}


sub waiting
{
    return $a->sql("SELECT count(*) FROM pg_stat_activity"
        . " WHERE wait_event = 'SyncRep' AND query LIKE '%urlstore_log%'");
}


sub wait_for
{
    my ($code, $name) = @_;

    return ok(UrlStore::Test::wait_until(5, $code), $name);
}


# the program, with a log that is open

package Log;

use IPC::Open2;

my @all;


sub new
{
    my ($class, $conninfo, %o) = @_;

    my $pid = open2(my $out, my $in, $PROGRAM, $conninfo, $o{shard} // 7,
        $o{single} // 0);

    $in->autoflush(1);
    push @all, bless { pid => $pid, in => $in, out => $out }, $class;

    return $all[-1];
}


sub tell { my ($self, $call) = @_; print { $self->{in} } "$call\n" }


sub answer
{
    my ($self) = @_;

    my $line = readline $self->{out};

    return $self->{last} = 'ended' if !defined $line;

    $line =~ s/ ?\n//;

    return $self->{last} = $line;
}


sub ask
{
    my ($self, $call) = @_;

    $self->tell($call);

    return $self->answer;
}


sub kill
{
    my ($self) = @_;

    CORE::kill KILL => $self->{pid};
    waitpid delete $self->{pid}, 0;
}


# ends all: how many of them with a signal, or with a report of a sanitizer

sub end
{
    my $bad = 0;

    for my $log (grep { $_->{pid} } @all) {
        $log->tell('quit');
        waitpid $log->{pid}, 0;
        $bad += $? != 0;
    }

    return $bad;
}
