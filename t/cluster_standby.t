#!/usr/bin/perl

# Two nodes of a replicated shard, as operators see and command them: promotion
# by command.

use strict;
use warnings;

use lib 't/lib';

use UrlStore::Postgres;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL is installed: make deps')
    if !UrlStore::Postgres::bin();

my $top = $UrlStore::Test::TOP;
my $pg = UrlStore::Postgres->new->start;
my $conninfo = $pg->conninfo;
my %conf;


# a node: zones u0, u1 ... of shards 0, 1 ..., and m, which is not replicated

sub node
{
    my ($name, $shards, $options) = @_;

    my $t = UrlStore::Test->new(globals =>
        "load_module $top/build/ngx_http_urlstore_postgres_module.so;");

    # a node that is stopped lets a call of its thread end

    $t->allow(qr/the log does not confirm/);
    spew($t->dir . '/log', $conninfo);

    $conf{$t} = "urlstore_cluster crawl %%DIR%%/map.json;\n" . join('', map {
        "urlstore_zone u$_ 8m cluster=crawl shard=$_ node=us_$_$name"
        . " replicate=postgres:\@%%DIR%%/log replicas=0 $options;\n"
    } 0 .. $shards - 1) . <<'CONF' . join '', map { <<CONF } 0 .. $shards - 1;
urlstore_zone m 8m path=%%DIR%%/m cluster=crawl shard=9 node=us_9;
urlstore_cluster other %%DIR%%/other.json;
server {
    listen 127.0.0.1:%%PORT%%;
    location = /cluster { urlstore_cluster_admin crawl; }
    location = /other { urlstore_cluster_admin other; }
    location /m/ { urlstore_api m; }
CONF
    location /$_/ { urlstore_api u$_; }
CONF

    return $t->run($conf{$t} .= "}\n");
}


sub state { $_[0]->get("/$_[1]/health")->json->{status} }


sub becomes
{
    my ($t, $shard, $state) = @_;

    return ok(wait_until(20, sub { state($t, $shard) eq $state }),
        "  shard $shard: $state") || diag(state($t, $shard));
}


# what the command prints, its exit code, and standard error

sub command
{
    my ($t, $arguments) = @_;

    my $out = `$top/build/urlstore cluster promote http://127.0.0.1:@{[$t->port
        ]}$arguments 2>$t->{dir}/err`;

    return $out . ($? >> 8) . "\n" . slurp("$t->{dir}/err");
}


# --- promotion by command

my $a = node('a', 2, 'lease=1s');

becomes($a, $_, 'ready') for 0, 1;

my $b = node('b', 2, 'lease=1s');

becomes($b, $_, 'standby') for 0, 1;

my $r = $b->post('/cluster?promote=1', '');

is($r->{status}, 200, 'one shard is promoted');
is_deeply($r->json, [{ shard => 1, node => 'us_1b', term => 2 }],
    '  the answer names it');
is(state($b, 1), 'ready', '  which is the primary');
is(state($b, 0), 'standby', '  the other one is not');
becomes($a, 1, 'standby');
is(state($a, 0), 'ready', '  and the other one stays');

$r = $b->post('/cluster?promote', '');
is($r->{status}, 200, 'all of them');
is_deeply($r->json, [{ shard => 0, node => 'us_0b', term => 2 },
    { shard => 1, node => 'us_1b', term => 2 }],
    '  what is the primary keeps its term');
becomes($a, 0, 'standby');

like($b->error_log, qr/"u0": to become the primary, by command/, '  logged');

is(command($a, ' --shard 1'), "1\tus_1a\t3\n0\n", 'by the program');
is(command($a, '/cluster'), "0\tus_0a\t3\n1\tus_1a\t3\n0\n", '  with a path');
becomes($b, $_, 'standby') for 0, 1;


# --- what is refused

for my $bad ('=', '=x', '=4096', '=-1', '=99999999999999999999', '=1&a=1') {
    is($a->post("/cluster?promote$bad", '')->{status}, 400, "promote$bad");
}

for my $none (['/cluster?promote=9', 'a shard that is not replicated'],
    ['/cluster?promote=7', 'none that is here'],
    ['/other?promote', 'another cluster'])
{
    $r = $a->post($none->[0], '');
    is($r->{status}, 409, $none->[1]);
    is(json($r->{body})->{reason}, 'replicate', '  by its reason');
}

like(command($a, '/other'),
    qr{^1\nurlstore: \S+: 409: no zone of this nginx .*=$},
    '  as the program says it');

is($a->post('/cluster?promoted', '')->{status}, 400, 'another argument');
is($a->get('/cluster?promote')->{status}, 404, 'by GET nothing is promoted');
like(command($a, ' --shard x'), qr/^2\n.*"x" is not the number/, 'no number');
like(command($a, ' x'), qr/^2\n.*usage: urlstore cluster/ms, 'usage');


# --- the log is away, for longer than a command is in force

if (full()) {
    my $start = time;

    $pg->stop('fast');
    $r = $b->post('/cluster?promote=0', '');
    is($r->{status}, 503, 'without the log it is not promoted');
    is($r->{headers}{'retry-after'}, 1, '  it may be sent again');
    like(json($r->{body})->{detail},
        qr/^node us_0b of shard 0 is .*; its state is standby: the log/,
        '  the reason');
    cmp_ok(time - $start, '<', 14, '  in time');
    like(command($b, ' --timeout 1'), qr/^2\n.*: 503: node us_0b/,
        '  as the program says it');
    sleep 2;
    $pg->start;
    becomes($a, $_, 'ready') for 0, 1;
    is(state($b, $_), 'standby', "  shard $_: nobody is promoted later")
        for 0, 1;
}
