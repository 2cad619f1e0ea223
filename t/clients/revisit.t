#!/usr/bin/perl

# clients/python/examples/revisit.py, of docs/revisit.md: crawlers that fetch
# pages again, one of them killed.  The server's clock is set by the test.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep);
use UrlStore::Site;
use UrlStore::Test;

need_fault_clock();

my $top = $UrlStore::Test::TOP;
my $pages = 100;
my $site = UrlStore::Site->new($pages);
my $t = UrlStore::Test->new(clock => 1)->run(<<'CONF');
urlstore_zone pages 16m marks=visited revisit=1m;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api pages; }
}
CONF


# starts a crawler: its pid

sub crawl
{
    my ($name) = @_;

    my $pid = fork() // die "fork: $!";

    return $pid if $pid;

    open STDERR, '>>', $site->dir . "/$name.out";
    $ENV{PYTHONPATH} = "$top/clients/python";
    $ENV{http_proxy} = $site->proxy;
    $ENV{no_proxy} = '127.0.0.1';

    exec '/usr/bin/python3', '-B', "$top/clients/python/examples/revisit.py",
        'http://127.0.0.1:' . $t->port, '1d', '2m'
        or POSIX::_exit(127);
}


sub ends { waitpid $_[0], 0; return $? == 0 }


sub left { $t->get('/urls?mark=!visited&limit=10000')->{body} =~ tr/\n// }


$t->post('/add', join("\n", @{ $site->urls }), 'Content-Type' => 'text/plain');
is(left(), $pages, 'pages that nobody has fetched');

$site->fetched;
ok(ends(crawl('early')), 'they were claimed just now');
is(keys %{ $site->fetched->{all} }, 0, 'and are left to who added them');

$t->clock(4 * 60);

my ($a, $b) = (crawl('a'), crawl('b'));

ok(wait_until(20, sub { left() < $pages - 25 }), 'two crawlers');
kill 'KILL', $a;
waitpid $a, 0;
ok(ends($b), 'one of them is killed');

my $left = left();
my $one = $site->fetched->{all};

cmp_ok($left, '>', 0, "$left pages are left");
$t->clock(8 * 60);
ok(ends(crawl('c')), 'when its lease is over, another goes on');
is(left(), 0, 'all are visited');

my $two = $site->fetched->{all};
my %all = (%$one, %$two);

is(keys %all, $pages, 'all were fetched');

my $sum = 0;
$sum += $_ for values %$one, values %$two;
cmp_ok($sum, '<=', $pages + 1, 'at most one twice: that of the kill');

# the next day

$t->clock(86400 + 3600);
($a, $b) = (crawl('a'), crawl('b'));
ok(ends($a) && ends($b), 'two, a day later');

my $three = $site->fetched->{all};

is(keys %$three, $pages, 'all are fetched again');
is(scalar(grep { $_ != 1 } values %$three), 0, 'once each');
ok(ends(crawl('a')), 'and nothing is due');
is(keys %{ $site->fetched->{all} }, 0, 'until the next day');
