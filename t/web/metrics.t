#!/usr/bin/perl

# Prometheus understands /metrics.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP qw(decode_json);
use UrlStore::Test;

my $t = UrlStore::Test->new(globals => 'load_module '
    . "$UrlStore::Test::TOP/build/ngx_http_urlstore_postgres_module.so;");

# of a router: a cluster of one shard, whose node is this server

spew($t->dir . '/router.json', <<"MAP");
{ "cluster": "@{['0f' x 16]}", "version": 1, "key": "site",
  "norm": "crawler/1 unicode=15.0 www=first",
  "shards": { "0": { "uuid": "@{['1e' x 16]}", "nodes": ["n"] } },
  "slots": [["0-4095", 0]] }
MAP

$t->run(<<'CONF');
urlstore_zone u 64m;
urlstore_zone kept 64m path=%%DIR%%/kept;
urlstore_filter f 1m capacity=10000 error=0.01;
urlstore_cluster c %%DIR%%/map.json;
urlstore_zone shard 8m path=%%DIR%%/shard cluster=c shard=0 node=n;
urlstore_zone copy 8m follow=http://127.0.0.1:%%PORT%%/kept/;
urlstore_zone logged 8m cluster=c shard=1 node=o replicate=postgres:port=9;
urlstore_cluster r %%DIR%%/router.json;
upstream n { server 127.0.0.1:%%PORT%%; }
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /kept/ { urlstore_api kept; }
    location /f/ { urlstore_api f; }
    location /shard/ { urlstore_api shard; }
    location /copy/ { urlstore_api copy; }
    location /kept/log { urlstore_log kept; }
    location /logged/ { urlstore_api logged; }
    location /router/ { urlstore_route r; }
}
CONF

my @text = ('Content-Type' => 'text/plain');
my $lines = join '', map { "$_\n" } @{ corpus('html_news_blogs_pages', 3000) };

ok($t->ready(below => '/kept', write => 1), 'ready');

for my $at ('', '/kept', '/f', '/router', '/logged') {
    for (1 .. 3) {
        last if $at eq '/router' || $at eq '/logged';
        is($t->post("$at/add", $lines, @text)->{status}, 200, 'load');
    }

    my $r = $t->get("$at/metrics");

    is($r->{status}, 200, "$at/metrics");
    like($r->{headers}{'content-type'}, qr|^text/plain; version=0\.0\.4|,
        'type of the text format');

    spew($t->dir . '/metrics', $r->{body});

    my $out = `promtool check metrics < @{[$t->dir]}/metrics 2>&1`;

    is($?, 0, 'promtool accepts them') or diag($out);
    is($out, '', 'without a complaint');
}


# it would complain

spew($t->dir . '/wrong', "urlstore_x 1\nurlstore_x 2\n");
isnt(system("promtool check metrics < @{[$t->dir]}/wrong >/dev/null 2>&1"), 0,
    'promtool refuses a wrong file');


# conf/alerts.yml: rules on figures that there are, each of which fires

my $rules = "$UrlStore::Test::TOP/conf/alerts.yml";

is(system("promtool check rules '$rules' >/dev/null 2>&1"), 0,
    'promtool accepts the alerts');

my %exists = map { $_ => 1 }
    map { $t->get("/$_/metrics")->{body} =~ /^(urlstore_\w+)/mg }
    qw(kept shard router logged copy);

is(join(' ', grep { !$exists{$_} } slurp($rules) =~ /\b(urlstore_\w+)/g), '',
    'all figures of the alerts exist');

my @alerts = slurp($rules) =~ /alert: (\w+)/g;
my %bad = (
    ready => '0+0x99', writable => '0+0x99', sync_failed => '1+0x99',
    stalled => '1+0x99', write_lag_bytes => '900+0x99',
    ring_size_bytes => '1000+0x99', fit_urls => '1000+0x99',
    epoch => '1+1x99', lock_recoveries_total => '0+1x99',
    replay_seconds => '11+0x99',
    'router_shard_ready{cluster="c", shard="1"' => '0+0x99',
    'router_shard_ready{cluster="c", shard="2"' => '1+0x99',
    'router_shard_writable{cluster="c", shard="2"' => '0+0x99',
    primary => '0+0x99', log_lag_bytes => '99999999+0x99',
    cache_off => '1+0x99', ' up' => '0+0x99', urls => '100000+600x99',
    replica_lag_seconds => '61+0x99', map_version => '7+0x99',
    'map_version{node="b"' => '8+0x99', unavailable_total => '0+9x99',
    log_base_lsn => '1000+0x99', log_end_lsn => '9000+0x99',
    store_bytes => '3000+0x99', clock_ahead_seconds => '90000+0x99',
    sets => '60+0x99', sets_most => '64+0x99',
);
my %good = (%bad, ready => '1+0x99', writable => '1+0x99',
    sync_failed => '0+0x99', stalled => '0+0x99',
    write_lag_bytes => '10+0x99', fit_urls => '100000000000+0x99',
    epoch => '7+0x99', lock_recoveries_total => '3+0x99',
    replay_seconds => '1+0x99',
    'router_shard_ready{cluster="c", shard="1"' => '1+0x99',
    'router_shard_writable{cluster="c", shard="2"' => '1+0x99',
    log_lag_bytes => '9+0x99', primary => '1+0x99', cache_off => '0+0x99',
    ' up' => '1+0x99', replica_lag_seconds => '0+0x99',
    'map_version{node="b"' => '7+0x99', unavailable_total => '9+0x99',
    store_bytes => '4001+0x99', clock_ahead_seconds => '3600+0x99',
    sets => '50+0x99');

is_deeply(fired(%bad), [ sort grep { !/eNotWritable|LogLong/ } @alerts ],
    'each fires');
is_deeply(fired(%bad, ready => '1+0x99', primary => '1+0x99'),
    [ sort grep { !/eNotReady|NoPrimary|StandbyBehind/ } @alerts ],
    'that new URLs are refused, only where look-ups are answered');
is_deeply(fired(%good), [], 'none without a cause');
is_deeply(fired(%good, ready => '0+0x99', primary => '0+0x99',
    'state{state="standby"' => '1+0x99'), ['UrlstoreNoPrimary'],
    'a standby is not ready, and needs a primary');
is_deeply(fired(%good, primary => '0+0x99', 'primary{shard="1"' => '1+0x99'),
    ['UrlstoreNoPrimary'], 'each shard needs one of its own');
is_deeply(fired(%good, log_lag_bytes => '99999999+0x99'), [],
    'a primary is not behind');


# conf/grafana.json: as Grafana reads it, on figures that there are

my $board = decode_json(slurp("$UrlStore::Test::TOP/conf/grafana.json"));
my @panels = @{ $board->{panels} };
my @exprs = map { $_->{expr} } map { @{ $_->{targets} } } @panels;
my @queries = map { ref $_->{query} ? $_->{query}{query} : () }
    @{ $board->{templating}{list} };
my %at;

cmp_ok($board->{schemaVersion}, '>=', 36, 'a dashboard');
is_deeply([ sort { $a <=> $b } map { $_->{id} } @panels ],
    [ 1 .. @panels ], 'its panels have ids of their own');

for my $panel (@panels) {
    my ($x, $y, $w, $h) = @{ $panel->{gridPos} }{qw(x y w h)};

    for my $cell (map { my $row = $_; map { "$row $_" } $x .. $x + $w - 1 }
        $y .. $y + $h - 1)
    {
        $at{$cell}++;
    }

    my @refs = map { $_->{refId} } @{ $panel->{targets} };

    ok(@refs && $panel->{title} && $panel->{type} =~ /^(stat|timeseries)$/
        && $x + $w <= 24 && @refs == keys %{ { map { $_ => 1 } @refs } },
        "panel: $panel->{title}");
}

is((grep { $_ > 1 } values %at), 0, 'none lies over another');
is(join(' ', grep { !$exists{$_} } map { /\b(urlstore_\w+)/g } @exprs,
    @queries), '', 'all figures of the dashboard exist');

# Prometheus parses the queries, with a value for each variable

my $checked = "groups:\n  - name: board\n    rules:\n";

for my $i (0 .. $#exprs) {
    my $expr = $exprs[$i] =~ s/\$__rate_interval/5m/gr
        =~ s/\$(job|instance|zone)/.*/gr;

    $checked .= "      - record: panel:$i\n        expr: '$expr'\n";
}

spew($t->dir . '/board', $checked);

my $said = `promtool check rules @{[$t->dir]}/board 2>&1`;

is($?, 0, 'Prometheus parses the queries') or diag($said);
unlike($checked =~ s/'//gr, qr/\$/, 'no other variable is used');


# those by shard: of two shards, one of them with a replica, and of a zone that
# is none

my ($by_shard) = map { $_->{targets}[0]{expr} }
    grep { $_->{title} eq 'URLs by shard' } @panels;

$by_shard =~ s/\$(job|instance|zone)/.*/g;

my $series = '';

for (['a', 'u', 0, 100], ['b', 'u', 0, 90], ['c', 'v', 12, 50]) {
    my ($instance, $zone, $shard, $urls) = @$_;
    my $of = qq({job="j", instance="$instance", zone="$zone", shard="$shard"});

    $series .= "      - { series: 'urlstore_urls$of', values: $urls }\n";
}

$series .= "      - { series: 'urlstore_urls{job=\"j\", instance=\"d\", "
    . "zone=\"u\"}', values: 7 }\n";

spew($t->dir . '/shards', <<"END");
tests:
  - interval: 1m
    input_series:
$series
    promql_expr_test:
      - expr: '$by_shard'
        eval_time: 0
        exp_samples:
          - { labels: '{shard="0"}', value: 100 }
          - { labels: '{shard="12"}', value: 50 }
END

$said = `promtool test rules @{[$t->dir]}/shards 2>&1`;
is($?, 0, 'a line for each shard') or diag($said);


# the alerts that fire after 99 minutes of these figures

sub fired
{
    my %series = @_;

    my $test = "rule_files: [ $rules ]\nevaluation_interval: 1m\ntests:\n"
        . "  - interval: 1m\n    input_series:\n";

    for my $name (sort keys %series) {
        my $labels = 'zone="u", job="j", instance="i"';
        my $metric = $name =~ /\{/ ? "$name, $labels}" : "$name\{$labels}";

        $metric = "urlstore_$metric" =~ s/^urlstore_ //r;
        $test .= "      - series: '$metric'\n"
            . "        values: '$series{$name}'\n";
    }

    $test .= "    alert_rule_test:\n";
    $test .= "      - { eval_time: 95m, alertname: $_, exp_alerts: [] }\n"
        for @alerts;

    spew($t->dir . '/alerts', $test);

    my $out = `promtool test rules @{[$t->dir]}/alerts 2>&1`;

    return [ sort $out =~ /alertname: ?(\w+), time:/g ];
}
