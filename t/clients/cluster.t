#!/usr/bin/perl

# A client that divides its URLs among the shards of a cluster by itself
# (clients/python/examples/cluster.py): it agrees with the router about every
# slot, and leaves to the router what a shard must not answer.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Fake;
use UrlStore::Test;

my $t = UrlStore::Test->new;
my ($dir, $top) = ($t->dir, $UrlStore::Test::TOP);

$t->run(<<'CONF');
urlstore_cluster c %%DIR%%/map.json;
urlstore_zone s0 8m path=%%DIR%%/s0 cluster=c shard=0 node=n0;
urlstore_zone s1 8m path=%%DIR%%/s1 cluster=c shard=1 node=n1;
urlstore_zone s2 8m path=%%DIR%%/s2 cluster=c shard=2 node=n2;
log_format what '$request_method $uri';
upstream n0 { server 127.0.0.1:%%PORT1%%; }
upstream n1 { server 127.0.0.1:%%PORT2%%; }
upstream n2 { server 127.0.0.1:%%PORT3%%; }
server {
    listen 127.0.0.1:%%PORT%%;
    access_log %%DIR%%/router.log what;
    location / { urlstore_route c; }
    location = /admin { urlstore_cluster_admin c; }
}
server { listen 127.0.0.1:%%PORT1%%; location / { urlstore_api s0; } }
server { listen 127.0.0.1:%%PORT2%%; location / { urlstore_api s1; } }
server { listen 127.0.0.1:%%PORT3%%; location / { urlstore_api s2; } }
CONF

my $router = 'http://127.0.0.1:' . $t->port;
my @uuid = map {
    my $shard = $t->client($_ + 1);

    ok(wait_until(20, sub {
        my $r = $shard->request('GET', '/health');
        $r && $r->{status} == 200 }), "shard $_");
    $shard->request('GET', '/stats')->json->{uuid};
} 0 .. 2;


sub apply
{
    my ($map) = @_;

    is(system("$top/build/urlstore cluster $map >$dir/new.json && $top/build/"
        . "urlstore cluster apply $dir/new.json $router/admin >$dir/out"), 0,
        "a map: $map") or diag(slurp("$dir/out"));
}


# lines of the example: [id, status, URL, unsure]

our %instead;       # of the port of a shard

sub add
{
    spew("$dir/urls", join '', map { "$_\n" } @_);

    my $nodes = join ' ', map { "n$_=http://127.0.0.1:"
        . ($instead{$_} // $t->port($_ + 1)) } 0 .. 2;
    my $out = `PYTHONPATH=$top/clients/python /usr/bin/python3 -B \\
        $top/clients/python/examples/cluster.py $router $nodes \\
        <$dir/urls 2>&1`;

    return map { [split /\t/] } grep { /\t/ } split /\n/, $out;
}


# requests that came to the router, without those for the map

sub asked
{
    return scalar grep { $_ !~ /cluster|admin/ } split /\n/,
        slurp("$dir/router.log");
}


apply("new --key site 0=$uuid[0],n0 1=$uuid[1],n1 2=$uuid[2],n2");
ok(wait_until(20, sub { $t->get('/cluster')->{status} == 200 }),
    'the router has it');

my @urls = map { 'http' . ($_ % 2 ? 's' : '') . '://'
    . ($_ % 3 ? '' : 'www.') . "h$_.test" . ($_ % 5 ? '' : ':8080')
    . "/a?b=$_" } 1 .. 300;
my $before = asked();
my @new = add(@urls);

is((grep { $_->[1] eq 'new' } @new), 300, 'all are new');
is(asked(), $before, 'the router was not asked');

my %shard = map { ($_->[0] >> 40) => 1 } @new;
is(join(' ', sort keys %shard), '0 1 2', 'on all shards');

my $seen = $t->post('/seen', join('', map { "$_\n" } @urls),
    'Content-Type' => 'text/plain')->{body};
is($seen, join('', map { "$_->[0]\tseen\t$_->[2]\n" } @new),
    'the router finds the same ids');

# not canonical: the slot is another one, but the id is the same

my ($i) = grep { $urls[$_] =~ m{^http://www\.h\d+\.test/} } 0 .. $#urls;
my ($other) = add($urls[$i] =~ s{http://www}{HTTP://WWW}r);

is("@$other[0, 1]", "$new[$i][0] seen", 'a URL that is not canonical');
is(asked(), $before + 2, '... by the router');

# a slot with a former owner: known URLs by the shards or the router, new ones
# by the router

my $map = slurp("$dir/new.json");

spew("$dir/next", $map =~ s/"version": 1/"version": 2/r
    =~ s/(\["0-\d+"), 0\]/$1, 1, 0]/r);
is(system("$top/build/urlstore cluster apply $dir/next $router/admin "
    . ">$dir/out"), 0, 'the slots of shard 0 go to shard 1')
    or diag(slurp("$dir/out"));
ok(wait_until(20, sub { $t->get('/cluster')->{headers}{etag} =~ /"2-/ }),
    'the router has it');

is(join(' ', map { "$_->[0] $_->[1]" } add(@urls)),
    join(' ', map { "$_->[0] seen" } @new), 'all keep their ids');

my @more = add(map { "http://more$_.test/" } 1 .. 100);

is((grep { $_->[1] eq 'new' } @more), 100, 'more are new');
is((grep { $_->[0] < 2 ** 40 } @more), 0, '... none at shard 0');

# a shard that adds URLs, and whose answer is lost, and which is then away

my $fake = UrlStore::Fake->new(sub {
    my ($name, $n) = @_;
    return $n ? { status => 405 }
        : { forward => $t->port(3), keyless => 1, drop => 'sent' };
});

local $instead{2} = $fake->port . '/x/shard';

my @lost = add(map { "http://lost$_.test/" } 1 .. 60);
my @two = grep { $_->[0] >= 2 ** 41 } @lost;

ok(@two > 0, 'URLs of a shard whose answer is lost');
is((grep { $_->[1] eq 'new' || ($_->[3] // '') eq 'unsure' } @lost), 60,
    '... are unsure: no page is lost');
is((grep { $_->[3] } @lost), @two, '... and the others are not');
