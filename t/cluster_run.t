#!/usr/bin/perl

# make cluster and make stop-cluster, by tools/cluster.sh.

use strict;
use warnings;

use lib 't/lib';
use File::Temp qw(tempdir);
use UrlStore::Test;

my $run = "$UrlStore::Test::TOP/tools/cluster.sh";
my $data = tempdir(CLEANUP => 1) . '/my cluster';
my $port = UrlStore::Test::free_port();


sub run
{
    my (@args) = @_;

    my $out = qx('$run' @args '$data' 2>&1);

    return ($? >> 8, $out);
}


my ($rc, $out) = run('start', $port);

is($rc, 0, 'start') or diag($out);
like($out, qr/^0\tnew\t/m, 'the tour adds to shard 0');
like($out, qr/^1099511627776\tnew\t/m, '  to shard 1');
like($out, qr/^2199023255552\tnew\t/m, '  and to shard 2');
like($out, qr|shard 2, URL 0\nhttp://a\.example/|, 'an id has its shard');
like($out, qr/^-\tunavailable\tshard:2$/m, 'a shard is stopped');
like($out, qr/"status":"seen"/, '  and runs again');

($rc, $out) = run('start', $port);
is($rc, 0, 'start again');
unlike($out, qr/\tnew\t/, '  with the URLs that are there');

my $other = UrlStore::Test::free_port();
($rc, $out) = run('start', $other);
is($rc, 1, 'start at another port');
like($out, qr/^0 runs with another configuration, .* than $other: stop it/m,
    '  while it runs');

my @pids = map { slurp($_) =~ /(\d+)/ } glob "'$data'/*/nginx.pid";
is(scalar @pids, 4, 'a router and three shards');

($rc, $out) = run('stop', $port);
is($rc, 0, 'stop');
is(scalar(grep { kill 0, $_ } @pids), 0, '  all have left');

is((run('start', 65533))[0], 1, 'a port without three after it');

done_testing();
