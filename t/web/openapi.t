#!/usr/bin/perl

# openapi.yaml is valid, and live answers are what it says.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $t = UrlStore::Test->new;

$t->allow(qr/map.json/)->run(<<'CONF');
urlstore_zone u 64m marks=visited sites=on revisit=1d;
urlstore_zone kept 32m path=%%DIR%%/kept;
urlstore_cluster c %%DIR%%/map.json;
urlstore_zone shard 8m path=%%DIR%%/shard cluster=c shard=0 node=n
              marks=visited revisit=1d;
urlstore_filter filter 1m capacity=1000 error=0.01;
upstream n { server 127.0.0.1:%%PORT1%%; }
server { listen 127.0.0.1:%%PORT1%%; location / { urlstore_api shard; } }
client_max_body_size 8m;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /kept/ { urlstore_api kept; }
    location = /kept/log { urlstore_log kept; }
    location = /log { urlstore_log u; }
    location /filter/ { urlstore_api filter; }
    location /shard/ { urlstore_api shard; }
    location /router/ { urlstore_route c; }
    location = /admin { urlstore_cluster_admin c; }
}
CONF

# the first map of a cluster names the shard's uuid

ok($t->ready(below => '/shard'), 'the shard has started');
my $shard = $t->get('/shard/stats')->json;

is($t->post('/admin', JSON::PP->new->encode({ cluster => '01234567' x 4,
    version => 1, norm => $shard->{normalization}, key => 'site',
    shards => { 0 => { uuid => $shard->{uuid}, nodes => ['n'] } },
    slots => [['0-4095', 0]] }), 'Content-Type' => 'application/json')
    ->{status}, 204, 'the shard has a map');

my $out = `node --test-reporter=tap $UrlStore::Test::TOP/t/web/openapi.mjs \\
    http://127.0.0.1:@{[$t->port]} 2>&1`;

is($?, 0, 'description and answers agree')
    or diag(join "\n", grep { /^not ok/ .. /^\s+code:/ } split /\n/, $out);

like($out, qr/^# pass 2\d\d/m, 'all were asked');


# --- the table of figures, of all kinds of zones, and the schema

my ($c, $yaml) = map { UrlStore::Test::slurp("$UrlStore::Test::TOP/$_") }
    'src/api/us_figures.c', 'front/openapi.yaml';

my %is = (FLAG => 'boolean', RATIO => 'number', SECONDS => 'number',
    GAUGE => 'integer', COUNTER => 'integer');
my (%table, %schema);

$table{$2} = $is{$1} while $c =~ /\{\s[\w|]+,\s(\w+),
    \s(?:AT|SHARED)\([^,;]+?\),\s+"(\w+)"/gx;
cmp_ok(scalar(keys %table), '>', 70, 'figures');

my ($stats) = $yaml =~ /^    Stats:\n(.*?)^    \w/ms;
my ($members) = $stats =~ /^      properties:\n(.*)/ms;
my %type = $members =~ /^        (\w+):.*&(\w+)\n/mg;
my %of = map { $_ => $members =~ /&$_\n\s+type: (\w+)/ ? $1 : '' } values %type;

while ($members =~ /^        (\w+):(.*(?:\n          .*|\n)*)/mg) {
    my ($name, $text) = ($1, $2);

    $schema{$name} = $text =~ /\*(\w+)/ ? $of{$1}
        : $text =~ /\btype: \[?(\w+)/ ? $1 : '';
}

is_deeply([ grep { ($schema{$_} // '') ne $table{$_} } sort keys %table ], [],
    'each figure is in the schema, with its type');
is_deeply([ grep { !$table{$_} } sort keys %schema ], [ sort qw(zone
    normalization state bytes_per_url answers uuid cluster persistent sync
    filter marks parts primary node holder) ], 'which has no other');
