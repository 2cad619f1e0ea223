#!/usr/bin/perl

# follow=: a replica has what its primary has, answers what it has, denies and
# writes nothing, says how far behind it is; and whatever happens to either, or
# between them, it has the primary's content in the end, and nothing else.
#
# US_REPLICA_CUTS=N, US_REPLICA_FLIPS=N: connections that are cut, that have a
# byte changed (15).  With kills under load: make test-replica.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep time);

use UrlStore::Proxy;
use UrlStore::Replica;
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;
my @text = ('Content-Type' => 'text/plain');
my $cuts = $ENV{US_REPLICA_CUTS} // 15;
my $flips = $ENV{US_REPLICA_FLIPS} // 15;


# --- configuration

for (
    [ 'follow=', qr{invalid value "" of parameter "follow".*http://HOST} ],
    [ 'follow=ftp://a/', qr/invalid value "ftp:/ ],
    [ 'follow=http://', qr/invalid value/ ],
    [ 'follow=http://127.0.0.1:0/', qr/invalid port in "follow=/ ],
    [ 'follow=http://no.invalid/', qr/host not found in "follow=http:..no/ ],
    [ 'follow=http://127.0.0.1/?a', qr/invalid value/ ],
    [ 'follow=http://127.0.0.1/ marks=a', qr/"follow" has no "marks": it has/ ],
    [ 'follow=http://127.0.0.1/ mode=lookup', qr/has no "mode=lookup"/ ],
    [ 'follow=http://127.0.0.1/ sync=off', qr/its "sync" needs a "path"/ ],
) {
    my ($options, $like) = @$_;
    my $t = UrlStore::Test->new;
    my ($rc, $out) = $t->check(zone_conf("4m $options"));

    ok($rc, "refused: $options");
    like($out, $like, '  says why');
}

for my $follow ('127.0.0.1', '127.0.0.1:81', '[::1]:81/a/b/', 'localhost/a') {
    my ($rc) = UrlStore::Test->new->check(
        zone_conf("4m follow=http://$follow"));

    is($rc, 0, "accepted: follow=http://$follow");
}


# --- before there is a primary, and then

my $primary = UrlStore::Test->new(log => 'notice');
my $proxy = UrlStore::Proxy->new($primary->port);
my $from = "http://127.0.0.1:" . $proxy->port;

my $replica = UrlStore::Test->new(log => 'notice')->run(
    zone_conf("32m follow=$from/"));

my $r = $replica->get('/health');

is($r->{status}, 503, 'no primary: not ready');
is($r->json->{status}, 'loading', '  but loading');
ok(wait_until(3, sub { ($replica->get('/health')->json->{reason} // '')
    =~ m{^the primary "\Q$from\E/": .*(?:was closed|reset by peer)} }),
    '  and says what is wrong');
like($replica->get('/url/0')->json->{detail}, qr/^loading: 0%, the primary/,
    '  in answers, too');
is($replica->get('/stats')->json->{lag_bytes}, 0, '  and in /stats');

my $conf = zone_conf('32m path=%%DIR%%/data sync=50ms snapshot=off '
    . 'marks=visited,hot');

$primary->allow_kills;
$replica->allow_kills;
$primary->run($conf);
ok($primary->ready(write => 1), 'the primary starts');
ok(level($primary, $replica), 'the replica has found it');

$r = $replica->get('/health');
is($r->{status}, 200, 'ready');
is_deeply([ @{ $r->json }{qw(status writable connected lag_bytes
    lag_seconds)} ], [ 'replica', JSON::PP::false(), JSON::PP::true(), 0, 0 ],
    '  it says so');
is($replica->get('/health?write=1')->{status}, 503, '  not for writes');


# --- what the primary has, in every way to ask

my $lines = corpus('html_news_blogs_pages', 6000);
my $at = 0;

add(2000);
$primary->post('/mark/visited', join("\n", map { $_ * 3 } 0 .. 200), @text);
$primary->post('/mark/hot', "1\n2\n3\n4\n", @text);
$primary->request('DELETE', '/mark/hot', "3\n4\n", @text);
$primary->forget("/url/$_") for 5, 6, 7, 63, 64;

same('adds, marks, deletes');
is_deeply($replica->get('/stats')->json->{marks}, [ 'visited', 'hot' ],
    'marks are those of the primary');

for (
    [ GET => '/url/0' ], [ GET => '/url/5' ], [ GET => '/url/0,1,2,5' ],
    [ POST => '/url', '[0, 1, 5]' ], [ GET => '/urls?limit=20' ],
    [ GET => '/urls?mark=!visited&limit=20&summary=1' ],
    [ POST => '/seen', join("\n", @$lines[200 .. 220]) ],
    [ GET => '/seen?url=' . uri_escape($lines->[100]) ],
    [ GET => '/prefix?url=' . uri_escape($lines->[100]) ],
    [ GET => '/site/' . ($lines->[0] =~ m{//([^/]+)})[0] ],
    [ GET => '/normalize?url=http://A.example/' ],
) {
    my ($method, $path, $body) = @$_;
    my @h = ($body // '') =~ /^\[/ ? ('Content-Type' => 'application/json')
        : @text;
    my ($p, $q) = map { $_->request($method, $path, $body, @h) }
        $primary, $replica;

    is("$q->{status} $q->{body}", "$p->{status} $p->{body}",
        "as the primary: $method $path");
}

is($replica->get('/url/0')->{headers}{etag},
    $primary->get('/url/0')->{headers}{etag}, 'with the same ETag');


# --- no denial, no write

for (
    [ GET => '/url/999999' ], [ GET => '/url/0,999999' ],
    [ GET => '/seen?url=http://new.example/' ], [ GET => '/site/no.example' ],
    [ POST => '/seen', "$lines->[200]\nhttp://new.example/\n" ],
    [ GET => '/prefix?url=http://new.example/' ],
) {
    my ($method, $path, $body) = @$_;

    $r = $replica->request($method, $path, $body, @text);
    is($r->{status}, 503, "no denial: $method $path");
    is($r->json->{primary}, "$from/", '  but the primary\'s name');
    ok($r->{headers}{'retry-after'}, '  and when to come again');
}

for (
    [ POST => '/add', "http://w.example/\n" ], [ POST => '/mark/hot', "9\n" ],
    [ DELETE => '/mark/hot', "1\n" ], [ DELETE => '/url/1' ],
) {
    my ($method, $path, $body) = @$_;

    $r = $replica->request($method, $path, $body, @text);
    is($r->{status}, 421, "no write: $method $path");
    is($r->json->{primary}, "$from/", '  but the primary\'s name');
    like($r->json->{detail}, qr/this zone is a replica, which is only read/,
        '  and why');
    ok(!exists $r->{headers}{'urlstore-refused'}, '  to a client');

    $r = $replica->request($method, $path, $body, @text,
        'Urlstore-Map' => 'c');
    is($r->{headers}{'urlstore-refused'}, 1, '  a router asks another node');
}

$r = $replica->get('/log');
is($r->{status}, 503, 'no replica of a replica');
is($r->json->{primary}, "$from/", '  but the primary\'s name');
like($r->json->{detail}, qr/this zone is a replica, which cannot be followed;/,
    '  and why');
same('nothing was written');


# --- how far behind

my $metrics = $replica->get('/metrics')->{body};

like($metrics, qr/^urlstore_$_$/m, "metric $_")
    for 'state\{zone="u",state="replica"\} 1', 'ready\{zone="u"\} 1',
        'replica_connected\{zone="u"\} 1', 'replica_lag_bytes\{zone="u"\} 0',
        'replica_lag_seconds\{zone="u"\} 0(?:\.0+)?',
        'replica_lsn\{zone="u"\} [1-9]\d*';

$proxy->mode('hang');
sleep 0.2;
my $lsn = $replica->get('/health')->json->{lsn};
add(200);
is($replica->get('/health')->json->{lsn}, $lsn, 'nothing comes through');
$proxy->mode('refuse');
ok(wait_until(3, sub { !$replica->get('/health')->json->{connected} }),
    'not connected');
sleep 0.5;

my $health = $replica->get('/health')->json;

cmp_ok($health->{lag_seconds}, '>=', 0.4, '  for some time');
like($health->{reason}, qr/the connection was closed|reset by peer/,
    '  it says why');
is($replica->get('/url/1')->{status}, 200, '  hits are answered');
is($replica->get('/stats')->json->{failures} > 0, 1, '  failures are counted');

$proxy->mode('pass');
same('when it is connected again');
is(restarts(), 0, 'nothing was fetched anew');


# --- a page in the place of the stream

for my $page ([ 200, 'the stream does not begin with a manifest' ],
    [ 410, 'it answered 410' ])
{
    my ($status, $why) = @$page;
    my $failures = $replica->get('/stats')->json->{failures};

    $primary->reload($conf
        =~ s/urlstore_log u;/return $status "moved";/r);
    ok(wait_until(8, sub {
        ($replica->get('/stats')->json->{failures} // 0) > $failures + 4 }),
        "the primary answers $status with a page, again and again");
    is($replica->get('/url/1')->{status}, 200, '  hits are answered');
    like($replica->get('/health')->json->{reason}, qr/$why/, '  it says why');
    $primary->reload($conf);
    add(50);
    same('  and goes on');
    is(restarts(), 0, 'nothing was fetched anew');
}


# --- restarts of the primary, kills of it

$primary->stop;
is($replica->get('/url/1')->{status}, 200, 'the primary is down: hits');
$primary->start;
$primary->ready(write => 1);
add(100);
same('the primary was restarted');

for (1 .. 3) {
    add(100);
    $primary->kill_all;
    $primary->start;
    ok($primary->ready(write => 1), 'the primary was killed');
    add(50);
    same('  and goes on');
}

$primary->reload;
add(50);
same('the primary was reloaded');
$primary->kill_worker;
add(50);
same('its worker was killed');
is(restarts(), 0, 'nothing was fetched anew');


# --- connections that are cut, bytes that are changed

for my $what ([ cut => $cuts ], [ flip => $flips ]) {
    my ($mode, $n) = @$what;

    for (1 .. $n) {
        $proxy->mode("$mode ~" . (400, 3000, 20000)[$_ % 3]);
        add(20);
        sleep 0.12;
    }

    $proxy->mode('pass');
    same("$mode, $n times");
}

unlike($replica->error_log, qr/do not fit the store|no whole store/,
    'what was changed was not applied');


# --- the replica: reloads, kills, restarts

my $before = restarts();

$replica->reload;
add(50);
same('the replica was reloaded');
is(restarts(), $before, '  and went on');

ok(wait_until(5, sub { $replica->kill_worker }), 'its worker is killed')
    for 1 .. 3;
add(50);
same('its workers were killed');

$replica->kill_all;
$replica->start;
same('all of the replica was killed');
$replica->stop;
add(50);
$replica->start;
same('the replica was restarted');


# --- a journal that has no such LSN any more: from the snapshot

$proxy->mode('refuse');
$primary->stop;
$primary->conf($conf =~ s/snapshot=off/snapshot=1k/r);
$primary->start;
$primary->ready(write => 1);
add(300);
ok(wait_until(10, sub { !-e $primary->dir . '/data/journal.' . '0' x 16
    || $primary->get('/stats')->json->{snapshots} }), 'a snapshot is taken');
add(20), sleep 0.1 for 1 .. 3;
$before = restarts();
$proxy->mode('pass');
same('a primary with snapshots');

$replica->stop;
$replica->start;
same('from nothing, by a snapshot');
ok(slurp($primary->dir . '/data/manifest') =~ /^snapshot/m, '  there is one');


# a first load that is cut goes on, though the primary has had a snapshot since

$replica->stop;
$primary->reload($conf
    =~ s/snapshot=off/snapshot=1k/r
    =~ s{urlstore_log u;}{urlstore_log u; limit_rate 30k;}r);
$primary->ready(write => 1);
$proxy->mode('cut 6000');
$replica->start;
ok(wait_until(5, sub { $replica->get('/stats')->json->{failures} }),
    'a first load is cut');
$proxy->mode('refuse');

my $snapshots = $primary->get('/stats')->json->{snapshots};

# soon: the primary keeps the files of a load that was cut for 30 s

ok(wait_until(10, sub { add(400); sleep 0.1;
    $primary->get('/stats')->json->{snapshots} > $snapshots + 1 }),
    '  the primary takes snapshots');
$proxy->mode('pass');
same('  and goes on');
is(restarts(), 0, '  with the files that it had begun');


# --- another epoch, another store: never a mixture

my $data = $primary->dir . '/data';

$primary->stop;
is(system("$top/build/urlstore backup $data $data.copy >/dev/null 2>&1"), 0,
    'a backup');
$primary->start;
$primary->ready(write => 1);
add(200);
same('more, which the backup has not');
$before = restarts();
$primary->stop;
rename $data, "$data.old" or die;
is(system("$top/build/urlstore restore $data.copy $data >/dev/null 2>&1"), 0,
    'restored');
system "chown -R nobody:nogroup $data" if $> == 0;
$primary->start;
$primary->ready(write => 1);
$primary->post('/add', join('', map { "http://other$_.example/\n" } 1 .. 500),
    @text);
same('another epoch');
cmp_ok(restarts(), '>', $before, '  all was fetched anew');
like($replica->error_log, qr/another epoch|has another/, '  and it was said');

# the files of an earlier day, put in their place by hand: the same epoch

$primary->stop;
system "cp -a $data $data.day";
$primary->start;
$primary->ready(write => 1);
add(100);
same('a day later');
$before = restarts();
$proxy->mode('refuse');
$primary->stop;
rename $data, "$data.later" or die;
rename "$data.day", $data or die;
$primary->start;
$primary->ready(write => 1);
$primary->post('/add', join('', map { "http://again$_.example/\n" } 1 .. 900),
    @text);
$proxy->mode('pass');
same('other bytes of the same epoch');
cmp_ok(restarts(), '>', $before, '  all was fetched anew');

$before = restarts();
$primary->stop;
rename $data, "$data.gone" or die;
$primary->start;
$primary->ready(write => 1);
$primary->post('/add', "http://first.example/\n", @text);
same('another store');
is($replica->get('/stats')->json->{urls}, 1, '  of one URL');
cmp_ok(restarts(), '>', $before, '  all was fetched anew');


# --- a zone that is too small, settings that differ

my $small = UrlStore::Test->new(log => 'notice')->run(
    zone_conf("400k follow=$from/"));

$primary->post('/add', join('', map { "http://s$_.example/"
    . join('', map { chr 97 + int rand 26 } 1 .. 60) . "\n" } 1 .. 9000),
    @text);

ok(wait_until(10, sub { $small->get('/health')->json->{status}
    eq 'too-small' }), 'a zone too small');
like($small->get('/url/1')->json->{detail}, qr/SIZE is too small.* suffices/,
    '  says so');
$small->allow(qr/SIZE is too small for the primary's data: \d+[km] suffices/);

# the state is there before the line in the log

my $need;

ok(wait_until(5, sub {
    ($need) = $small->error_log =~ /data: (\d+[km]) suffices/
}), '  and the log, too');
my $enough = UrlStore::Test->new->run(zone_conf("$need follow=$from/"));

ok(level($primary, $enough), "  $need does suffice");

my $other = UrlStore::Test->new->run(
    zone_conf("16m profile=whatwg follow=$from/"));

ok(wait_until(5, sub { ($other->get('/health')->json->{reason} // '')
    =~ /were stored with norm/ }), 'another normalization is refused');


# the next lines of the list, to the primary

sub add
{
    my ($n) = @_;

    for (1 .. 50) {
        my $got = $primary->post('/add', join('', map {
            ($lines->[$at + $_] // 'http://more.example/' . ($at + $_)) . "\n"
            } 0 .. $n - 1), @text);

        last if $got->{status} == 200;
        sleep 0.05;
    }

    $at += $n;
}


sub restarts { return $replica->get('/stats')->json->{restarts} }


sub same
{
    my ($what) = @_;

    ok(level($primary, $replica), "$what: the replica is level")
        or diag $replica->get('/health')->{body},
            join '', (grep { /urlstore_zone/ }
                split /^/, $replica->error_log)[-5 .. -1];
    is(differs($primary, $replica, 'visited', 'hot'), '',
        '  and has the same');
}
