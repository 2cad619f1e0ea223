#!/usr/bin/perl

# make cluster-pg and make stop-cluster-pg, by tools/cluster-pg.sh.

use strict;
use warnings;

use lib 't/lib';
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use UrlStore::Postgres;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $run = "$UrlStore::Test::TOP/tools/cluster-pg.sh";
my $dir = tempdir(CLEANUP => 1);
my $data = "$dir/my cluster";
my $port = UrlStore::Test::free_port();

# it is root's alone, so PostgreSQL's user needs another place than $data

END {
    my $pg = readlink("$data/pg");
    remove_tree($pg) if $pg;
}


sub run
{
    my (@args) = @_;

    my $out = qx('$run' @args '$data' 2>&1);

    return ($? >> 8, $out);
}


my ($rc, $out) = run('start', $port);

is($rc, 0, 'start') or diag($out);
like($out, qr/"status": ?"new"/, 'the tour adds');
like($out, qr/"status":"ready".*"status":"standby"/s, 'a primary, a standby');
like($out, qr/was killed\.\n.* after \d+ ms, by node ([ab]):/, 'a failover');
like($out, qr|/url/0'\nhttp://a\.example/\n|, 'the id is there');
like($out, qr/runs again\n.*"status":"standby"/,
    'the killed node is a standby');

($rc, $out) = run('start', $port);
is($rc, 0, 'start again') or diag($out);
like($out, qr/"status": ?"seen"/, '  with the URLs that are there');

my @pids = map { slurp($_) =~ /^(\d+)/ }
    glob("'$data'/*/nginx.pid '$data'/pg/*/postmaster.pid");
is(scalar @pids, 5, 'a router, two nodes, two servers');
is(-l "$data/pg" ? 'a link' : 'a folder', $> == 0 ? 'a link' : 'a folder',
    'PostgreSQL has a place that its user can enter');

($rc, $out) = run('stop', $port);
is($rc, 0, 'stop') or diag($out);
is(scalar(grep { alive($_) } @pids), 0, '  all have left');

done_testing();
