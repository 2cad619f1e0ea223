#!/usr/bin/perl

# /stats and /metrics: the same figures, and what a URL takes.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $conf = <<'CONF';
urlstore_zone mem 16m marks=visited,done;
urlstore_zone kept 64m path=%%DIR%%/kept sync=100ms;
urlstore_zone big 1g;
urlstore_filter f 1m capacity=10000 error=0.01;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api mem; }
    location /kept/ { urlstore_api kept; }
    location /big/ { urlstore_api big; }
    location /f/ { urlstore_api f; }
}
CONF

my $t = UrlStore::Test->new->run($conf);
my @text = ('Content-Type' => 'text/plain');
my @parts =
    qw(header ring log offsets index caches models sites claims maps deleted
       sets erasures);
my ($s, $m);

ok($t->ready(below => '/kept', write => 1), 'ready');


# --- an empty store

for my $at ('', '/kept') {
    $s = stats($at);

    is_deeply([ sort keys %{ $s->{parts} } ], [ sort @parts ],
        "$at/stats has all parts");
    is(sum(values %{ $s->{parts} }), $s->{used}, 'which are all in use');
    is($s->{used} + $s->{free}, $s->{size}, 'and with the rest the size');
    is($s->{store_bytes}, $s->{used} - $s->{parts}{header} - $s->{parts}{ring},
        'the store is all but the header and the ring');
    is($s->{bytes_per_url}, undef, 'nothing is said of a URL');
    is($s->{persistent} ? 1 : 0, $at ? 1 : 0, 'persistent');
}

is(stats('')->{parts}{ring}, 0, 'no ring without path=');
cmp_ok(stats('/kept')->{parts}{ring}, '>=', 1 << 20, 'a ring with path=');


# --- a store of three URLs, and one that has grown

my $urls = urls(1, 60000);

post('/add', substr $urls, 0, index($urls, "\n", 200) + 1);
$s = stats('');
cmp_ok($s->{urls}, '>', 0, 'some URLs');
is($s->{bytes_per_url}, undef, 'are too few for bytes_per_url');

post("$_/add", $urls) for '', '/kept';

for my $at ('', '/kept') {
    $s = stats($at);

    is($s->{urls}, 60000, "60,000 at $at");
    cmp_ok(abs($s->{bytes_per_url} - $s->{store_bytes} / $s->{urls}), '<',
        0.01, 'bytes_per_url is what the store takes');
    cmp_ok($s->{bytes_per_url}, '<', 40, 'and little') or diag(explain($s));
}

# fit does not jump when the store's own figures are taken for it

post('/big/add', urls(2, 900));
my $fit = stats('/big')->{fit};
post('/big/add', urls(3, 300));
cmp_ok(stats('/big')->{fit}, '>', 0.98 * $fit, 'fit of few URLs is steady');
is(stats('/big')->{bytes_per_url}, undef, 'in a large zone, too');


# --- /metrics is the same

$t->post('/seen', "http://none.example/\nftp://x/\n", @text);
$t->forget('/url/1');
$t->get('/stats');

for my $at ('', '/kept', '/f') {
    post("$at/add", urls(4, 100));
    post("$at/add", urls(4, 10));

    ok(wait_until(30, sub {
        my $now = stats($at);

        # 60,000 URLs are enough for a model

        ($at eq '/f' || $now->{parts}{models} > 0)
            && ($at ne '/kept' || $now->{unsynced_bytes} == 0)
    }), 'nothing is under way');

    # nor does anything come between the two: a snapshot, say

    ok(wait_until(30, sub {
        my $before = $t->get("$at/stats");

        ($s, $m) = ($before->json, metrics($at));
        $t->get("$at/stats")->{body} eq $before->{body};
    }), 'both at once');

    for my $name (sort keys %$s) {
        my $v = $s->{$name};
        my $metric = metric_of($name) // next;

        $v = $v ? 1 : 0 if ref $v eq 'JSON::PP::Boolean';
        ok(exists $m->{$metric}, "$at: $metric") or next;
        is($m->{$metric} + 0, $v, "is $name of /stats");
    }

    is_deeply({ map { my $v = $m->{"zone_used_bytes{$_}"};
        defined $v ? ($_ => $v + 0) : () } @parts }, $s->{parts} // {},
        'parts');
    is_deeply({ map { $_ => $m->{"answers_total{$_}"} + 0 }
        keys %{ $s->{answers} } }, $s->{answers}, 'answers');

    is($m->{ready}, 1, 'ready');
    is($m->{writable}, 1, 'writable');
    is($m->{full}, 0, 'not full');
}

$s = stats('/f');
is($s->{answers}{new}, 100, 'answers are counted') or diag(explain($s));
is($s->{answers}{seen}, 10, 'by what they are');


# --- states

for my $at ('', '/kept', '/f') {
    $m = metrics($at);
    is_deeply([ map { /^state\{(.*)\}/ && $m->{$_} ? $1 : () } keys %$m ],
        [ 'ready' ], "one state at a time: $at");
    is(scalar(grep { /^state\{(loading|not-owner|damaged|too-small|failed)\}/ }
        keys %$m), $at eq '/kept' ? 5 : 0, 'all of them are listed')
        if $at eq '/kept';
}

is($m->{epoch}, stats('/f')->{epoch}, 'the epoch of a filter');
is(metrics('')->{epoch}, stats('')->{epoch}, 'and of a store');
is(metrics('/kept')->{sync_failed}, 0, 'no sync has failed');
is(metrics('/kept')->{ring_size_bytes}, stats('/kept')->{parts}{ring},
    'the size of the ring');
ok(!exists metrics('')->{$_}, "no $_ without path=")
    for qw(sync_failed ring_size_bytes replay_seconds);


# --- a restart: how long it took, in both

$t->stop;
$t->start;
ok($t->ready(below => '/kept', write => 1), 'restarted');

$s = stats('/kept');
like($s->{replay_seconds}, qr/^\d+(?:\.\d+)?$/, 'the seconds that it took');
cmp_ok($s->{replay_seconds}, '>', 0, 'are some');
is(metrics('/kept')->{replay_seconds} + 0, $s->{replay_seconds},
    'in /metrics, too');


# --- another master owns the directory

my $other = UrlStore::Test->new->run($conf
    =~ s/%%DIR%%/$t->dir/er =~ s/urlstore_zone big.*\n//r
    =~ s/location .big.*\n//r);

ok(wait_until(10, sub { $m = metrics('/kept', $other);
    $m->{'state{not-owner}'} }), 'not the owner') or diag(explain($m));
is($m->{'state{ready}'}, 0, 'not ready');
is($m->{ready}, 0, 'says a gauge');
is($m->{writable}, 0, 'as another');
is(stats('/kept', $other)->{state}, 'not-owner', 'and /stats');
is(stats('/kept', $other)->{ready}, JSON::PP::false(), 'in both ways');
$other->stop;


# --- damaged

$t->stop;
damage($t->dir . '/kept');
$t->start;
$t->allow(qr/urlstore/);
ok(wait_until(10, sub { ($m = metrics('/kept'))->{'state{damaged}'}
    || $m->{'state{failed}'} }), 'damaged') or diag(explain($m));
is($m->{ready}, 0, 'not ready');
is($m->{writable}, 0, 'not writable');


# --- full

$t->post('/f/add', urls(10 + $_, 4000), @text) for 1 .. 5;
is(metrics('/f')->{full}, 1, 'a full filter');
is(metrics('/f')->{writable}, 0, 'is not writable');
is(metrics('/f')->{ready}, 1, 'but ready');
is(stats('/f')->{writable}, JSON::PP::false(), 'as /stats says');


sub stats
{
    my ($at, $of) = @_;

    return ($of // $t)->get("$at/stats")->json;
}


# { 'urls' => 3, 'zone_used_bytes{log}' => 10, ... }, without the prefix and
# the zone

sub metrics
{
    my ($at, $of) = @_;

    my %m;

    for (split /\n/, ($of // $t)->get("$at/metrics")->{body}) {
        $m{$1 . (defined $2 ? "{$2}" : '')} = $3
            if /^urlstore_(\w+)\{zone="\w+"(?:,\w+="([^"]*)")?\} (\S+)$/;
    }

    return \%m;
}


# what is no number, or has no metric of its own

sub metric_of
{
    my ($name) = @_;

    my %m = (
        (map { $_ => undef } qw(zone uuid normalization parts marks answers
            sync state filter persistent bytes_per_url uptime hashes progress
            published written durable next_id segment snapshot_lsn
            unsynced_bytes)),
        urls => $m->{filter_urls} ? 'filter_urls' : 'urls',
        deleted => 'deleted_ids',
        size => $m->{filter_urls} ? 'filter_size_bytes' : 'zone_size_bytes',
        used => undef, free => 'zone_free_bytes',
        store_bytes => 'store_bytes',
        revisit => 'revisit_seconds', clock => 'claims_clock_seconds',
        clock_ahead => 'clock_ahead_seconds',
        fit => 'fit_urls', recoveries => 'lock_recoveries_total',
        capacity => 'filter_capacity_urls',
        error => 'filter_stated_error_ratio',
        expected_error => 'filter_error_ratio',
        filling => 'filter_filling_ratio',
        lag_bytes => 'write_lag_bytes',
        (map { $_ => "${_}_total" } qw(trainings lock_waits hot_hits claims
            over_quota over_budget unready journal_writes journal_syncs
            journal_errors snapshots scrubbed_bytes takeovers body_bytes),
            qw(idempotency_repeated idempotency_forgotten)),
    );

    return exists $m{$name} ? $m{$name} : $name;
}


sub post
{
    my ($path, $body) = @_;

    while ($body =~ /\G((?:.*\n){1,5000})/g) {
        my $r = $t->post($path, $1, @text);
        is($r->{status}, 200, "POST $path") if $r->{status} != 200;
    }
}


sub urls
{
    my ($seed, $n) = @_;

    return join '', map { "http://s" . $_ % 97 . ".example/$seed/path/"
        . ($_ * 7919 % 100003) . ".html\n" } 1 .. $n;
}


sub sum
{
    my $sum = 0;
    $sum += $_ for @_;
    return $sum;
}


# a byte in the middle of the largest file

sub damage
{
    my ($dir) = @_;

    my ($file) = sort { -s $b <=> -s $a } glob "$dir/*";
    my $all = slurp($file);

    substr($all, length($all) / 2, 1) ^= "\x01";
    spew($file, $all);
}
