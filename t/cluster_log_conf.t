#!/usr/bin/perl

# replicate= and the options beside it, at the configuration and at a reload.
# No PostgreSQL is needed: nginx starts without it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use UrlStore::Test;

my $module = $UrlStore::Test::POSTGRES;

plan(skip_all => 'no module for PostgreSQL was built: make deps')
    if !-e $module;

my $t = UrlStore::Test->new(globals => "load_module $module;");
my $shard = 'cluster=crawl shard=0 node=us_0a';
my $log = 'replicate=postgres:port=9';


sub text
{
    my ($options) = @_;

    return "urlstore_cluster crawl %%DIR%%/map.json;\n"
        . zone_conf("16m $options");
}


sub refused
{
    my ($options, $why, $what) = @_;

    my ($rc, $out) = $t->check(text($options));

    isnt($rc, 0, $what);
    like($out, qr/\[emerg\].*$why/, '  with its reason');
}


sub accepted
{
    my ($options, $what) = @_;

    my ($rc, $out) = $t->check(text($options));

    is($rc, 0, $what) or diag($out);
}


accepted("$shard $log", 'a replicated zone');
accepted("$shard $log lease=1s takeover=1s replicas=0", 'the least times');
accepted("$shard $log takeover=off replicas=1", 'no takeover');
accepted("$shard $log stale=$_", "stale=$_") for '1s', 'off';
accepted("$shard $log base=/none", 'a base that is not looked at here');
accepted("$log node=us_0a shard=0 cluster=crawl", 'in any order');


# --- the module of the log

refused("$shard replicate=mysql:port=9", qr/zone "u": "replicate=mysql:" needs /
    . '"load_module modules/ngx_http_urlstore_mysql_module.so;"',
    'a log that there is none of');
refused("$shard replicate=" . 'x' x 200 . ':port=9', qr/needs "load_module /,
    'with a long name');
refused("$shard replicate=", qr/invalid .*replicate/, 'nothing');
refused("$shard replicate=port=9", qr/invalid .*replicate/, 'no kind');
refused("$shard replicate=:port=9", qr/invalid .*replicate/, 'an empty kind');

{
    local $t->{globals} = '';

    refused("$shard $log", qr/"replicate=postgres:" needs "load_module /
        . 'modules/ngx_http_urlstore_postgres_module.so;"',
        'a module that is not loaded');
}

{
    # a byte of its US_VERSION is another one

    my $text = slurp($module);
    my ($version) = slurp("$UrlStore::Test::TOP/src/us_version.h")
        =~ /US_VERSION\s+"([^"]+)"/;
    my $other = ($version =~ s/^./9/r);
    my $n = $text =~ s/\Q$version\E\0/$other\0/g;

    ok($n, 'a module of another version');
    spew($t->dir . '/other.so', $text);

    local $t->{globals} = "load_module $t->{dir}/other.so;";

    refused("$shard $log", qr/"ngx_http_urlstore_postgres_module" is of /
        . "version \Q$other\E, this module of \Q$version\E", '  is not used');
}


# --- the connection

refused("$shard replicate=postgres:nonsense", qr/zone "u", "replicate": .*/,
    'no connection string');
refused("$shard replicate=postgres:nonsense=1",
    qr/"replicate": the connection string is not valid: invalid connection opt/,
    'an option that there is none of');

my $secret = qq("replicate=postgres:password=hunter2 nonsense=1");

refused("$shard $secret", qr/"replicate": the connection string is not valid/,
    'a bad one with a password');
unlike(($t->check(text("$shard $secret")))[1], qr/hunter2/,
    '  which is not shown');
refused("$shard replicate=postgres:\@%%DIR%%/none",
    qr/zone "u": open\(\) ".*none" failed \(2: No such file/, 'no file');

spew($t->dir . '/secret', "port=9 password=hunter2 nonsense=1\n");
refused("$shard replicate=postgres:\@%%DIR%%/secret",
    qr/zone "u", "replicate": /, 'a file with a bad one');
unlike(($t->check(text("$shard replicate=postgres:\@%%DIR%%/secret")))[1],
    qr/hunter2/, '  whose password is not shown');
spew($t->dir . '/secret', "port=9 password=hunter2\r\n\n");
accepted("$shard replicate=postgres:\@%%DIR%%/secret", 'a file');
spew($t->dir . '/secret', 'port=9' . ' ' x 4090);
accepted("$shard replicate=postgres:\@%%DIR%%/secret", 'of 4096 bytes');
spew($t->dir . '/secret', 'port=9' . ' ' x 4091);
refused("$shard replicate=postgres:\@%%DIR%%/secret",
    qr/zone "u": ".*secret" cannot be read, or has more than 4096 bytes/,
    'of 4097 bytes');
refused("$shard replicate=postgres:\@%%DIR%%", qr/cannot be read, or has/,
    'a folder');


# the same, where the kind or the quotes are forgotten

for my $bad ('replicate=password=hunter2', 'replicate=password=hunter2:x',
    'replicate=:password=hunter2', '"replicate=hunter2 a:b"',
    'replicate=postgres:port=9 password=hunter2',
    'replicate=postgres:port=9 sslpassword=hunter2')
{
    refused("$shard $bad", qr/invalid/, $bad =~ s/hunter2/.../r);
    unlike(($t->check(text("$shard $bad")))[1], qr/hunter2/,
        '  whose password is not shown');
}


# --- what it needs, and excludes

for my $lacks (['shard=0 node=us_0a', 'cluster'],
    ['cluster=crawl node=us_0a', 'shard'], ['cluster=crawl shard=0', 'node'])
{
    refused("$lacks->[0] $log",
        qr/zone "u": a zone with "replicate" needs a "$lacks->[1]"/,
        "without $lacks->[1]");
}

accepted("$shard $log path=%%DIR%%/u snapshot=64k", 'with a directory');

for my $excludes (['follow=http://127.0.0.1:9/', 'follow'],
    ['mode=lookup', 'mode=lookup'])
{
    refused("$shard $log $excludes->[0]",
        qr/zone "u": a zone with "replicate" has no "$excludes->[1]"/,
        "with $excludes->[1]");
}

for my $option ('lease=2s', 'takeover=5s', 'takeover=off', 'replicas=0',
    'stale=off', 'base=/none')
{
    my ($name) = $option =~ /(\w+)/;

    refused("$shard path=%%DIR%%/u $option",
        qr/zone "u": its "$name" needs a "replicate"/, "$option without it");
}

for my $bad ('lease=999ms', 'lease=0', 'lease=', 'lease=x', 'takeover=999ms',
    'takeover=0', 'takeover=on', 'stale=999ms', 'stale=0', 'replicas=2',
    'replicas=', 'base=')
{
    my ($name) = $bad =~ /(\w+)/;

    refused("$shard $log $bad", qr/$name/, $bad);
}


# --- a reload

$t->run(text("$shard $log"));
is($t->get('/health')->json->{status}, 'loading', 'it starts without the log');
is_deeply([ @{ $t->get('/stats')->json }{qw(state uuid)} ], ['loading', undef],
    '  and has no uuid');
$t->allow(qr/its "(?:node|shard|replicate)" cannot change while nginx runs/);

for my $change (['node', "$shard $log" =~ s/us_0a/us_0b/r],
    ['shard', "$shard $log" =~ s/shard=0/shard=1/r],
    ['replicate', "$shard path=%%DIR%%/u"])
{
    my ($name, $options) = @$change;
    my $from = length $t->error_log;

    ok(!$t->reload(text($options)), "a reload does not change $name");
    like(substr($t->error_log, $from), qr/zone "u": its "$name" cannot change/,
        '  with its reason');
}

ok($t->reload(text("$shard " . $log =~ s/9/10/r)),
    'another connection is used from a reload on');
ok(wait_until(20, sub { $t->error_log =~ /the log of shard 0 .*\.10"/ }),
    '  and named in the log');
