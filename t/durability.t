#!/usr/bin/perl

# What is answered stays: stop and start, kill -9 of everything, of the master
# alone; loading in the background; a torn end, damage in the middle; options
# that cannot change.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep time);

use UrlStore::Test;

my $lines = corpus('trackawesomelist_md', 20_000);

my $t = UrlStore::Test->new(workers => 2, daemon => 0);

sub conf
{
    my ($options) = @_;

    return zone_conf("64m path=%%DIR%%/data $options",
        'client_max_body_size 8m');
}

sub newest
{
    my @files = sort glob($t->dir . '/data/journal.*');
    return $files[-1];
}

my (%id, $n);

sub add
{
    my (@urls) = @_;

    my $a = $t->post('/add', join("\n", @urls) . "\n");

    return $a if $a->{status} != 200;

    for my $line (split /\n/, $a->{body}) {
        my ($id, $status, $url) = split /\t/, $line;
        next if $id eq '-';

        fail("$url was $id{$url}, is $id")
            if defined $id{$url} && $id{$url} != $id;
        fail("$url is new again") if defined $id{$url} && $status eq 'new';
        $id{$url} = $id;
    }

    return $a;
}

# the client's own record against the store: the number of differences

sub wrong
{
    my $wrong = 0;
    my %url = reverse %id;
    my @ids = sort { $a <=> $b } keys %url;

    while (my @part = splice @ids, 0, 1000) {
        my $a = $t->post('/url', join("\n", @part) . "\n",
            Accept => 'text/plain');

        for my $line (split /\n/, $a->{body}) {
            my ($id, $url) = split /\t/, $line;
            $wrong++ if !defined $url || $url{$id} ne $url;
            delete $url{$id};
        }
    }

    return $wrong + keys %url;
}

$t->run(conf('sync=1s'));
ok($t->ready, 'ready with an empty directory');

is($t->get('/stats')->json->{sync}, '1s', 'sync is in /stats');
is(add(@$lines[$n .. $n + 999])->{status}, 200, "added $n") for
    map { $n = 1000 * $_ } 0 .. 4;

my $epoch = $t->get('/stats')->json->{epoch};
my $uuid = $t->get('/stats')->json->{uuid};

is($t->forget('/url/3')->{status}, 204, 'one is forgotten');
my ($gone) = grep { $id{$_} == 3 } keys %id;
delete $id{$gone};

# stop, start

ok($t->stop, 'stopped');
like(UrlStore::Test::slurp($t->dir . '/data/manifest'), qr/^state clean$/m,
    'closed in order');

$t->start;
ok($t->ready, 'started');
is(wrong(), 0, 'every id has its URL');
is($t->get('/url/3')->{status}, 410, 'the forgotten one is gone');
is($t->get('/stats')->json->{epoch}, $epoch, 'the same epoch');
is($t->get('/stats')->json->{uuid}, $uuid, 'the same store');

add(@$lines[0 .. 4999]);
is(wrong(), 0, 'all were seen under the same ids');

# kill -9 of everything

add(@$lines[5000 .. 5999]);
$t->kill_all;
$t->start;
ok($t->ready, 'started after kill -9');
is(wrong(), 0, 'every id has its URL');
is($t->get('/stats')->json->{epoch}, $epoch, 'the same epoch');

# a torn end

add(@$lines[6000 .. 6999]);
$t->kill_all;
my $known = keys %id;
truncate newest(), (-s newest()) - 7;
$t->start;
ok($t->ready, 'started with a torn end');
ok(wait_until(5, sub {
    $t->error_log =~ /\[warn\].*torn end was cut: \d+ bytes, \d+ ids/
}), 'it was cut, and reported');
cmp_ok($t->get('/stats')->json->{epoch}, '>', $epoch, 'a new epoch');

my ($ids) = $t->error_log =~ /torn end was cut: \d+ bytes, (\d+) ids/;
my $next = $t->get('/stats')->json->{next_id};
my @lost = grep { $id{$_} >= $next } keys %id;
is(@lost, $ids, 'the number of lost ids is right');
delete @id{@lost};
is(wrong(), 0, 'the others have their URLs');
is(add(@$lines[6000 .. 6999])->{status}, 200, 'and it goes on');
is(wrong(), 0, 'with right answers');

# damage in the middle

$t->kill_all;

my $file = newest();
my $whole = UrlStore::Test::slurp($file);
my $bad = $whole;
substr($bad, length($bad) / 4, 1) ^= "\x40";
UrlStore::Test::spew($file, $bad);

$t->allow(qr/\[emerg\].*CRC is wrong/);
$t->start;
ok(wait_until(20, sub { $t->get('/health')->json->{status} eq 'damaged' }),
    'damage is found');
ok(wait_until(5, sub { $t->error_log
    =~ /\[emerg\].*journal\.\S+" at offset \d+: a block/ }), 'with its place')
    or diag($t->error_log);
is(UrlStore::Test::slurp($file), $bad, 'the file was not touched');

my $a = $t->post('/add', "http://example.com/\n");
is($a->{status}, 503, 'read-only');
like($a->json->{detail}, qr/read-only.*journal\./, 'says why');
is($t->get('/url/0')->{status}, 200, 'what is before the damage is there');
is($t->get('/url/' . ($next + 1))->{status}, 503,
    'what comes after is not denied');
is($t->get('/seen?url=http://never.example/')->{status}, 503,
    'nor is anything else');
ok($t->stop, 'stopped');
is(UrlStore::Test::slurp($file), $bad, 'nor at the end');

like(`$UrlStore::Test::TOP/build/urlstore verify @{[ $t->dir ]}/data`,
    qr/^DAMAGED  journal\./m, 'verify finds it too');
is($? >> 8, 1, 'and says so');

UrlStore::Test::spew($file, $whole);
$t->start;
ok($t->ready, 'repaired');
is(wrong(), 0, 'all is there');

# options that cannot change

$t->allow(qr/\[emerg\].*its "(?:path|sync|marks)" cannot change/);

ok(!$t->reload(conf('sync=always')), 'sync= cannot change at a reload');
ok(!$t->reload(conf('') =~ s|path=\S+/data||r), 'nor path= go');
ok(!$t->reload(conf('') =~ s|/data|/other|r), 'nor move');
ok($t->reload(conf('sync=1s')), 'the same again');
ok($t->ready, 'ready');
is(wrong(), 0, 'all is there');

ok($t->stop, 'stopped');

my ($rc, $out) = $t->check(conf('sync=1s schemes=first'));
is($rc, 1, 'nginx -t refuses what a start would refuse');
like($out, qr/stored with schemes "keep"/, 'readably');

$t->conf(conf('sync=1s schemes=first'));
$t->allow(qr/\[emerg\].*stored with schemes/);
ok(!$t->_start, 'other settings are refused');
like($t->error_log, qr/\[emerg\].*stored with schemes "keep"/, 'readably');

$t->conf(conf('sync=1s'));
$t->start;
ok($t->ready, 'started');

# the master alone

my $master = delete $t->{pid};
my @workers = $t->worker_pids($master);
is(@workers, 2, 'two workers');
$t->allow(qr/the master process is gone/);
add(@$lines[7000 .. 7099]);
kill 'KILL', $master;
waitpid $master, 0;

my $start = time;
ok(wait_until(5, sub { !grep { alive($_) } @workers }), 'its workers end');
cmp_ok(time - $start, '<', 3, 'soon');

$t->start;
ok($t->ready, 'started');
is(wrong(), 0, 'all is there');
