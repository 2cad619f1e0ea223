#!/usr/bin/perl

# What /stats remembers of a zone's past.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Test::More;
use UrlStore::Test;

my $t = UrlStore::Test->new(workers => 2)->run(<<'CONF');
urlstore_zone u 16m;
urlstore_filter f 1m capacity=10000 error=0.01;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /f/ { urlstore_api f; }
}
CONF

my $begin = time;

ok(!exists $t->get('/stats')->json->{history}, 'only who asks gets it');
ok(!exists $t->get('/stats?history=0')->json->{history}, '0 is no');

my ($first) = history();

is($first->[1], 0, 'the first sample is of the start, without URLs');
cmp_ok($first->[0], '>=', $begin - 1, 'and has its time');

$t->post('/add', join('', map { "http://a.example/$_\n" } 1 .. 500),
    'Content-Type' => 'text/plain');

# one in ten seconds: workers that come and go do not take more of them

for (1 .. 5) {
    $t->reload or die 'reload';
}

my @all = history();
my $stats = $t->get('/stats')->json;

is($all[-1][1], 500, 'the last is of now');
is($all[-1][2], $stats->{used}, 'with its bytes');
cmp_ok(abs($all[-1][0] - time), '<', 5, 'and its time');
cmp_ok(scalar @all, '<=', 3 + (time - $begin) / 9, 'no more than are due');
is_deeply([ map { $_->[0] } @all ], [ sort { $a <=> $b } map { $_->[0] } @all ],
    'in order of time');

# samples, and what is now

ok(wait_until(60, sub { (@all = history()) > 2 }),
    'one more after ten seconds');
is($all[1][1], 500, 'with what there was');

ok(!exists $t->get('/f/stats?history=1')->json->{history}, 'but no history');

$t->stop;
done_testing();


sub history
{
    my $h = $t->get('/stats?history=1')->json->{history};

    return @$h;
}
