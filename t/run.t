#!/usr/bin/perl

# make run, make stop and conf/urlstore.conf, by tools/run.sh: what a newcomer
# sees first.

use strict;
use warnings;

use lib 't/lib';
use File::Temp qw(tempdir);
use UrlStore::Test;
use UrlStore::Client;

my $run = "$UrlStore::Test::TOP/tools/run.sh";
my $data = tempdir(CLEANUP => 1) . "/my data";
my $port = UrlStore::Test::free_port();

ok(!IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port,
    Listen => 1), 'the port of a test is its own, also before it is used');

my ($rc, $out) = run('start', $port, $data, 2);

is($rc, 0, 'start') or diag($out);
like($out, qr/The service runs \(pid \d+, 2 workers\)/, 'says so');
like($out, qr/"status": ?"new"/, 'the tour adds');
like($out, qr/"status": ?"seen"/, 'the www variant is seen');
like($out, qr|^\d+\tseen\t|m, 'a text answer');
like($out, qr/^-\tinvalid\tscheme$/m, 'a refused one');
like($out, qr|^http://www\.example\.com/|m, 'an id gives its URL');
like($out, qr/^\{"status":"ready".*"writable":true/m, 'ready');
like($out, qr/^To stop it: +(make stop DATA='\Q$data\E')$/m,
    'the whole command to stop it');

my ($stop) = $out =~ /^To stop it: +(.*)/m;

my $c = UrlStore::Client->new('127.0.0.1', $port);

is($c->request('GET', '/health')->{status}, 200, 'ready');

my ($pid) = slurp("$data/urlstore.pid") =~ /(\d+)/;

($rc, $out) = run('start', $port, $data, 2);
is($rc, 0, 'start again');
like($out, qr/running already \(pid $pid\)/, 'says that it runs');
like($out, qr/^\Q$stop\E ends it/m, 'and how to stop it');

($rc, $out) = run('start', $port + 1, $data, 2);
is($rc, 0, 'start on another port');
like($out, qr|\(pid $pid\): http://127\.0\.0\.1:$port/$|m, 'says where it is');

my $urls = $c->request('GET', '/stats')->json->{urls};

cmp_ok($urls, '>', 0, 'the tour has left URLs');

($rc, $out) = run('reload', $port, $data, 3);
is($rc, 0, 'reload') or diag($out);
is($c->request('GET', '/stats')->json->{urls}, $urls, 'keeps the store');
ok(wait_until(10, sub {
    3 == UrlStore::Test::workers($pid, "$data/logs/error.log")
}), 'with three workers now');

is(system("cd '$UrlStore::Test::TOP' && $stop >/dev/null 2>&1"), 0,
    'the command that was printed');
ok(!kill(0, $pid), 'it is gone');


# a store that has URLs gets no others

($rc, $out) = run('start', $port, $data, 2);
is($rc, 0, 'start of a store that is not empty') or diag($out);
like($out, qr/^The store has $urls URLs\b/m, 'says so');
unlike($out, qr/"new"|\tnew\t/, 'adds none');
like($out, qr/^0\thttp:/m, 'but shows some');
like($out, qr/^To stop it: +\Q$stop\E$/m, 'and how to stop it');
is($c->request('GET', '/stats')->json->{urls}, $urls, 'as many as before');

($rc, $out) = run('stop', $port, $data);
is($rc, 0, 'stop');

($rc, $out) = run('stop', $port, $data);
is($rc, 0, 'stop again');
like($out, qr/does not run/, 'says so');

is((run('start', 'x', $data, 2))[0], 1, 'a wrong port');
is((run('start', 70000, $data, 2))[0], 1, 'a port that is too high');
is((run('start', $port, $data, 'many'))[0], 1, 'a wrong number of workers');
is((run('start', $port, '/proc/none', 2))[0], 1, 'a wrong directory');


# somebody else has the port

my $other = IO::Socket::INET->new(LocalAddr => '127.0.0.1',
    LocalPort => $port, Listen => 1, ReuseAddr => 1) or die $!;

($rc, $out) = run('start', $port, $data, 2);
is($rc, 1, 'a port in use');
like($out, qr/^Port $port is taken .*: make run DATA='.*' PORT=\d+/,
    'says so');

unlike(slurp("$data/logs/error.log"), qr/\[(?:alert|crit|emerg)\]/,
    'no alerts');

done_testing();


sub run
{
    my $args = join ' ', map { "'$_'" } @_;
    my $out = `$run $args 2>&1 < /dev/null`;

    return ($? >> 8, $out);
}
