#!/usr/bin/perl

# The load of load_reddit.t while a worker is killed by SIGKILL every 100 ms,
# fifty times, and the configuration reloaded every second.  What was answered
# stays; a client that got no answer asks again.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep time);

use UrlStore::Test;
use UrlStore::Load;

my $lines = full() ? corpus('reddit_submissions')
    : [ @{ corpus('reddit_submissions', 100_000) }, @{ generated(200_000) } ];
my $size = full() ? '1g' : '256m';

my $t = UrlStore::Test->new(workers => 2,
    globals => 'worker_shutdown_timeout 10s;')->run(<<"CONF");
urlstore_zone u $size;
client_max_body_size 8m;
client_body_buffer_size 512k;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

$t->allow_kills;

my ($kills, $reloads) = (0, 0);
my $start = time;

my $load = UrlStore::Load->new($t, $lines);
my @loads;

sub harm
{
    if ($kills < 50 && time >= $start + 0.1 * ($kills + 1)
        && $t->kill_worker)
    {
        $kills++;
    }

    if (time >= $start + $reloads + 1) {
        $t->signal('HUP');
        $reloads++;
    }

    sleep 0.01;
}

# seven seconds are enough, unless the machine has much else to do

do {
    push @loads, $load->post('/add', spread => 7, meanwhile => \&harm);
} while ($kills < 50 && @loads < 10);

my $answers = $loads[0];

is($kills, 50, 'fifty workers were killed');
cmp_ok($reloads, '>=', 5, 'a reload every second');
is(scalar @$answers, @$lines, 'each line got an answer');

my $book = UrlStore::Load::book(@loads);

is_deeply($book->{faults}, [], 'one id a URL, one URL an id, no gap');

ok(wait_until(10, sub { $t->worker_pids == 2 }), 'two workers again');
is($t->get('/stats')->json->{urls}, @{ $book->{urls} }, 'none doubled');
is(UrlStore::Load::wrong_urls($t, $book->{urls}), 0, 'none lost');

my $again = $load->post('/add');

is(scalar(grep { $_->[1] eq 'new' } @$again), 0, 'all are seen');
is_deeply(UrlStore::Load::book($answers, $again)->{faults}, [],
    'under the same ids');
