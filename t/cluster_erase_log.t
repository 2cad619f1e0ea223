#!/usr/bin/perl

# Nothing of URLs that were erased is left in a replicated log: a new base takes
# the place of the rows that have them, by itself, also if the primary is killed
# before, while it is made, or before what it replaces is removed.
#
# What is looked for in the tables: texts, in all records that their parts and
# rows have, decoded; and the bytes of the records that were erased, in a dump
# and in the files of the tables.  Of both nodes: texts in their memory, and the
# bytes of records in their directories.

use strict;
use warnings;

use lib 't/lib';

use Time::HiRes qw(sleep time);

use UrlStore::Corpora;
use UrlStore::Nodes;
use UrlStore::Postgres;
use UrlStore::Test;
use UrlStore::Traces;

use constant WITHIN => 4;                       # s

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $top = $UrlStore::Test::TOP;
my @text = ('Content-Type' => 'text/plain');
my $pg = UrlStore::Postgres->new->start;
my $n = UrlStore::Nodes->new($pg->conninfo, $pg->conninfo);
my $urls = corpus('reddit_submissions', 12000);

$_->allow(qr/the log .*is tried again/, qr/all is read anew/,
    qr/no new base of the log was made/, qr/not all that it has replaced/)
    for $n->nodes;

# a connection that goes on during both wipes holds blocks with older texts

$n->{http} = 'keepalive_timeout 0;';
$n->conf('replicas=0 takeover=2s lease=1s path=%%DIR%%/u erase_within='
    . WITHIN . 's');
is($n->begin(sub { }), '', 'two nodes');

my ($p, $s) = $n->nodes;
my $erasure = 0;
my (%id, %gone);

primary();

# rows of one URL each, and of many

$p->post('/add?brief=1', $_, @text) for splice @$urls, 0, 300;

while (my @some = splice @$urls, 0, 500) {
    $p->post('/add?brief=1', join("\n", @some), @text);
}

# texts that no model makes shorter, at the end of a long row

my @raw = map { my $n = $_; "http://raw.test/$n/" . join '', map {
    ('a' .. 'z', 'A' .. 'Z', 0 .. 9)[rand 62] } 1 .. 400 } 1 .. 140;

$p->post('/add?brief=1', join("\n", @raw), @text);

for (split /\n/, $p->get('/urls?limit=100000')->{body}) {
    my ($id, $url) = split /\t/;
    $id{$url} = $id;
}

my @urls = sort { $id{$a} <=> $id{$b} } keys %id;
my @others = map { [@urls[map { 17 * $_ } @$_]] } [1 .. 300], [301 .. 350],
    [351 .. 400], [401 .. 450];

push @{ $others[0] }, @raw;

cmp_ok(@urls, '>', 9000, 'real URLs');

# the records, as they are in the rows

my %bytes = map { $_->[0] => pack 'H*', $_->[1] } records();

is(keys %bytes, @urls, 'the rows have them');
looked_for(texts => $others[0]);
ok(traces(texts_of(records())), '  and their texts');


# --- erased, without anybody's doing

erase($others[0]);
like(left(), qr/\blog\b/, 'the log has them');

my $began = time;
my $had = $began;                               # then records were not gone yet

wait_until(60, sub {
    my $now = time;

    return 1 if left() !~ /memory/;
    $had = $now;
    return 0;
});

is(gone(), '', 'nothing is left');
diag(sprintf 'after %.1f s', time - $began);
is(standby(), 'log', '  but for the log, of which the standby knows nothing');
diag(sprintf 'after %.1f s', time - $began);
own('erased');

# each of two wipes closes the sessions, as their buffers may have begun in
# memory with texts; the second one is at least so much after the records

cmp_ok($pg->sql('SELECT extract(epoch FROM min(backend_start))'
    . ' FROM pg_stat_activity WHERE datname = current_database()'
    . ' AND pid <> pg_backend_pid()'), '>', $had + WITHIN / 8,
    'sessions began after the second wipe');
is($p->stats->{rebases}, 1, 'one base is made');
whole('erased');
none('it');

sleep 2 * WITHIN;
is($p->stats->{rebases}, 1, 'no other base is made');

looked_for(bytes => [keys %gone]);
is(files(), 1, 'the files of PostgreSQL have bytes of them');
$pg->sql($_) for map { "VACUUM urlstore_$_" } qw(shard log base);

my ($found, $report) = files();

diag('after VACUUM: ' . $report =~ s/.*\n(?=.)//sr);
$pg->sql($_) for map { "VACUUM FULL urlstore_$_" } qw(shard log base);
($found, $report) = files();
is($found, 0, 'after VACUUM FULL, none');
diag($report) if $found;


# --- killed before the records are gone

erase($others[1]);
takeover();
is(gone(), '', 'killed at once: nothing is left');
is(standby(), 'log', '  nor at the standby that was the primary');
own('killed at once');
whole('killed at once');
none('the next primary');


# --- before the base is in force

{
    my $held = $pg->hold('SELECT 1 FROM urlstore_log WHERE lsn = -1'
        . ' FOR KEY SHARE');

    erase($others[2]);
    ok(wait_until(30, sub { waiting('FOR UPDATE OF p, s') }),
        'a base is being made');
    like(left(), qr/\blog\b/, '  for what is left');
    takeover();
    like(left(), qr/\blog\b/, '  also at the next primary');
    $held->end;
    is(gone(), '', 'killed before it is in force: nothing is left');
    whole('killed before a base is in force');
    none('the next primary');
}


# --- before what it has replaced is removed

{
    my $base = $pg->sql('SELECT base FROM urlstore_shard');
    my $held = $pg->hold("SELECT 1 FROM urlstore_base WHERE base = $base"
        . ' FOR UPDATE');

    erase($others[3]);
    ok(wait_until(30, sub { waiting('DELETE FROM urlstore_base') }),
        'the old one is removed');
    like(left(), qr/\blog\b/, '  and is left so far');
    isnt($pg->sql('SELECT base FROM urlstore_shard'), $base,
        '  while another one is in force');
    $base = $pg->sql('SELECT base FROM urlstore_shard');
    takeover();
    like(left(), qr/\blog\b/, '  also at the next primary');
    $held->end;
    is(gone(), '', 'killed before it is removed: nothing is left');
    is($pg->sql('SELECT base FROM urlstore_shard'), $base,
        '  without another base');
    whole('killed before the old base is removed');
    none('the next primary');
}


# --- in the end

$s->kill_all;
$s->start;
ok(level(), 'a standby that is made anew');
is($s->post('/cluster?promote', '')->{status}, 200, '  becomes the primary');
($p, $s) = ($s, $p);
ok(wait_until(20, sub { ready($p) }), '  and is it');
whole('made anew');

$pg->sql($_) for map { "VACUUM FULL urlstore_$_" } qw(shard log base);
looked_for(bytes => [keys %gone]);
($found, $report) = files();
is($found, 0, 'after VACUUM FULL, the files of PostgreSQL have none of them');
diag($report) if $found;


# the texts of these URLs, or the bytes of their records, are looked for

sub looked_for
{
    my ($what, $list) = @_;

    my %looked = map { $_ => 1 } @$list;
    my @kept = grep { !$looked{$_} } @urls;

    traces_of(map({ my $of = $_; $what eq 'texts' ? $of
        : [map { $bytes{$id{$_}} } @$of] } $list, \@kept),
        ($p->worker_pids)[0]);
}


# what PostgreSQL has on its disk, but for its own log

sub files
{
    $pg->sql('CHECKPOINT');

    return traces("$pg->{data}/base");
}


# the parts of the base in force and the rows past it: [id, operation, text]

sub records
{
    my ($base, $from, @payloads) = tables();
    my $dir = $p->{dir};

    spew("$dir/payloads", join '', map { "$_\n" } @payloads);

    my @lines = `$top/build/traces/ops <$dir/payloads`;

    die "ops: $?" if $?;

    return map { chomp; [split /\t/, $_, 3] } @lines;
}


# the number of the base, and what follows it in the log, by pg_dump

sub tables
{
    my (%table, $to);

    for (split /\n/, $pg->dump) {
        $to = $table{$1} //= [] if /^COPY public\.urlstore_(\w+)/;
        push @$to, [split /\t/] if $to && /\t/ && !/^COPY/;
        undef $to if /^\\\.$/;
    }

    my $base = $table{shard}[0][7];
    my @parts = map { substr $_->[3], 3 } sort { $a->[2] <=> $b->[2] }
        grep { $_->[1] == $base } @{ $table{base} };
    my $from = @parts ? unpack 'Q<', pack 'H*', substr $parts[-1], 48, 16 : 0;
    my @rows = sort { $a->[1] <=> $b->[1] } grep { $_->[1] >= 0 }
        @{ $table{log} };

    # of the row that the base ends in, the rest

    @rows = map { substr $_->[6], 3 + 2 * ($from > $_->[1] ? $from - $_->[1]
        : 0) } grep { $_->[2] > $from } @rows;

    return ($base, $from, @parts, @rows);
}


sub texts_of
{
    my (@records) = @_;

    spew("$p->{dir}/texts", join '', map { "$_->[2]\n" } @records);

    return "$p->{dir}/texts";
}


# nothing is in the tables any more

sub none
{
    my ($what) = @_;

    my @records = records();

    cmp_ok(@records, '>=', @urls, "$what has all ids in the log");
    looked_for(texts => [keys %gone]);
    traces_none(texts_of(@records), '  and no text of them');
    looked_for(bytes => [keys %gone]);
    spew("$p->{dir}/bytes", map { pack 'H*', $_ } $pg->dump =~ /\\\\x(\w+)/g);
    traces_none("$p->{dir}/bytes", '  nor a byte of their records');
}


sub erase
{
    my ($list) = @_;

    my $r = $p->post('/erase', join("\n", @$list), @text);

    is($r->{status}, 202, 'erased') or diag($r->{body});
    $gone{$_} = 1 for @$list;
    $erasure++;
}


sub left
{
    my $r = $p->get("/erase/$erasure");

    return $r->{status} == 200 ? join ' ', @{ $r->json->{left} }
        : $r->{status};
}


# what is left in the end

sub gone
{
    wait_until(60, sub { left() eq '' });

    return left();
}


# what a standby has left

sub standby
{
    my $left;

    wait_until(60, sub {
        my $r = $s->get("/erase/$erasure");
        $left = $r->{status} == 200 ? join ' ', @{ $r->json->{left} }
            : $r->{body};
        return $left eq 'log';
    });

    return $left;
}


# what the nodes have themselves: files and memory

sub own
{
    my ($what) = @_;

    looked_for(texts => [keys %gone]);
    traces_none("pid:$_", "$what: no text in process $_")
        for map { $_->worker_pids } $p, $s;
    looked_for(bytes => [keys %gone]);
    traces_none("$_->{dir}/u", '  nor a byte of a record in the files')
        for $p, $s;
}


# the primary is killed, and the standby has its place

sub takeover
{
    $p->kill_all;
    ok(wait_until(30, sub { ready($s) }), 'another primary');
    $p->start;
    ($p, $s) = ($s, $p);
}


# all others are there, at both nodes; and the erased ones are not

sub whole
{
    my ($what) = @_;

    my @kept = grep { !$gone{$_} } @urls;
    my @ids = map { "$id{$_}\n" } @kept;
    my $want = join '', map { "$id{$_}\t$_\n" } @kept;

    for my $t ($p, $s) {
        ok(wait_until(30, sub {
            my $got = '';

            for (my @all = @ids; my @some = splice @all, 0, 4000; ) {
                $got .= $t->post('/url', join('', @some), @text,
                    Accept => 'text/plain')->{body} // '';
            }

            return $got eq $want;
        }), "$what: all others are there");
    }

    my $r = $p->post('/seen', join("\n", keys %gone), @text);

    is(() = $r->{body} =~ /\tunseen\t/g, keys %gone, '  and the erased are not')
        or diag(substr $r->{body}, 0, 300);
}


sub waiting
{
    return $pg->sql("SELECT count(*) FROM pg_stat_activity WHERE"
        . " wait_event_type = 'Lock' AND query LIKE '%$_[0]%'");
}


sub state { return ($_[0]->get('/health')->json // {})->{status} // '' }
sub ready { return state($_[0]) eq 'ready' }


sub primary
{
    ok(wait_until(20, sub { ready($p) || ready($s) }), 'one is the primary');
    ($p, $s) = ($s, $p) if !ready($p);
}


sub level
{
    return wait_until(30, sub {
        my ($of, $to) = map { $_->get('/stats')->json // {} } $p, $s;

        return ($to->{urls} // -1) == ($of->{urls} // -2)
            && $to->{lag_bytes} == 0 && state($s) eq 'standby';
    });
}
