#!/usr/bin/perl

# A Prometheus with conf/alerts.yml watches a server whose disk becomes full:
# the alerts of it fire, and end when the disk has room again.
#
# US_FULL=1: with the times of the rules; else a minute is two seconds.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Client;
use UrlStore::Test;

my @expected = qw(UrlstoreNotWritable UrlstoreStalled);
my $rules = slurp("$UrlStore::Test::TOP/conf/alerts.yml");
my $patience = full() ? 150 : 30;

$rules =~ s/for: 1m$/for: 2s/mg if !full();

my $t = UrlStore::Test->new(disk => 1);
$t->allow(qr/\[alert\].*write to journal\.\S+ at \d+ failed/);
$t->run(<<'CONF');
urlstore_zone u 16m path=%%DIR%%/data sync=1s;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

my $port = UrlStore::Test::free_port();
my $dir = $t->dir;

spew("$dir/alerts.yml", $rules);
spew("$dir/prometheus.yml", $t->expand(<<'CONF'));
global: { scrape_interval: 500ms, evaluation_interval: 500ms }
rule_files: [ alerts.yml ]
scrape_configs:
  - job_name: urlstore
    static_configs: [ { targets: [ "127.0.0.1:%%PORT%%" ] } ]
CONF

my $pid = fork() // die "fork: $!";

if ($pid == 0) {
    open STDOUT, '>', "$dir/prometheus.log";
    open STDERR, '>&', \*STDOUT;
    exec 'prometheus', "--config.file=$dir/prometheus.yml",
        "--storage.tsdb.path=$dir/tsdb", '--log.level=warn',
        "--web.listen-address=127.0.0.1:$port" or POSIX::_exit(127);
}

END {
    local $?;
    kill 'TERM', $pid if $pid;
    waitpid $pid, 0 if $pid;
}

my $prometheus = UrlStore::Client->new('127.0.0.1', $port);


sub asks
{
    my ($path) = @_;

    my $r = eval { $prometheus->request('GET', "/api/v1/$path") };

    return $r && $r->{status} == 200 ? $r->json->{data} : undef;
}


# the names of the alerts that fire, of those in any state

sub alerts
{
    my ($state) = @_;

    my $data = asks('alerts') or return 'no answer';

    return join ' ', sort map { $_->{labels}{alertname} }
        grep { !$state || $_->{state} eq $state } @{ $data->{alerts} };
}


ok($t->ready(write => 1), 'ready');
ok(wait_until(30, sub {
    my $data = asks('query?query=urlstore_ready');
    return $data && @{ $data->{result} } == 1
        && $data->{result}[0]{value}[1] == 1;
}), 'Prometheus reads the figures') or diag(slurp("$dir/prometheus.log", 1));
is($t->post('/add', "http://a.example/1\n")->{status}, 200, 'an add');
is(alerts(), '', 'no alert');

$t->disk('write 28');
is($t->post('/add', "http://a.example/2\n")->{status}, 503, 'the disk is full');
ok(wait_until($patience, sub { alerts('firing') eq "@expected" }),
    "alerts fire: @expected") or diag(alerts());

my ($stalled) = grep { $_->{labels}{alertname} eq 'UrlstoreStalled' }
    @{ asks('alerts')->{alerts} };

is($stalled->{annotations}{summary},
    'u cannot write to its directory, or its log does not confirm',
    '... and name the zone');
is($stalled->{labels}{instance}, '127.0.0.1:' . $t->port, '... and the server');

$t->disk('');
ok($t->ready(write => 1), 'the disk has room again');
is($t->post('/add', "http://a.example/2\n")->{status}, 200, '... adds go on');
ok(wait_until($patience, sub { alerts() eq '' }), '... and the alerts end')
    or diag(alerts());
