#!/usr/bin/perl

# What depends on a drop of a set waits until the drop is on disk: a 404, also
# of a batch that began before it, and a list of a set that is none any more.

use strict;
use warnings;

use lib 't/lib';
use POSIX ();
use UrlStore::Test;

need_fault_disk();

my $t = UrlStore::Test->new(workers => 1, disk => 1)->run(zone_conf(
    '16m path=%%DIR%%/data sync=always sets_create=auto'));
my @text = ('Content-Type' => 'text/plain');
my $url = "http://example.com/\n";
my %batches = map { $_ => $t->client } '/seen?set=a', '/add?set=a', '/set/a';

ok($t->ready(write => 1), 'ready');
is($t->post('/add?set=a', $url, @text)->{status}, 200, 'a set');

for (sort keys %batches) {
    my $had = $t->get('/stats')->json->{body_bytes};

    $batches{$_}->begin(POST => $_, @text);
    $batches{$_}->piece($url);
    ok(wait_until(10, sub {
        $t->get('/stats')->json->{body_bytes} - $had == length $url
    }), "POST $_ begins");
}

$t->disk('stall 1');

my $drop = fork() // die;

if ($drop == 0) {
    delete $t->{client};
    POSIX::_exit($t->request(DELETE => '/set/a')->{status} == 503 ? 0 : 1);
}

ok(wait_until(10, sub { $t->get('/stats')->json->{sets} == 0 }), 'dropped');

is($t->get($_)->{status}, 503, "GET $_ waits, in vain") for '/set/a',
    '/urls?set=a', '/urls?set=!a', '/seen?set=a&url=http://example.com/';

for (sort keys %batches) {
    $batches{$_}->piece($url);
    is($batches{$_}->end->{status}, 503, "  so does POST $_");
}

waitpid $drop, 0;
is($?, 0, '  and the drop itself');

$t->disk('');
ok($t->ready(write => 1), 'the disk comes back');
is($t->get('/set/a')->{status}, 404, '  there is no such set');
is($t->get('/urls?set=a')->{body}, '', '  nor has it anything');

ok($t->stop, 'stopped');
done_testing();
