#!/usr/bin/perl

# urlstore_cluster_admin on a disk that is slow or fails: a map is shown when it
# is durable; a router answers when the file of the map is.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;
use IO::Socket::INET;

use UrlStore::Test;

need_fault_disk();

my $json = JSON::PP->new->canonical;
my $t = UrlStore::Test->new(disk => 1);


sub map_text
{
    my ($version, $uuid) = @_;

    return $json->encode({
        cluster => 'c' x 32, version => $version, key => 'site',
        norm => 'crawler/1 unicode=15.0 www=first',
        shards => { 0 => { uuid => $uuid, nodes => ['us_0'] } },
        slots => [['0-4095', 0]],
    });
}


# --- a shard

$t->run(<<'CONF');
urlstore_cluster crawl %%DIR%%/map.json;
urlstore_zone u 16m path=%%DIR%%/u cluster=crawl shard=0 node=us_0;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location = /admin { urlstore_cluster_admin crawl; }
    location = /limited {
        urlstore_cluster_admin crawl;
        limit_except GET { allow all; }
    }
    location = /denied {
        urlstore_cluster_admin crawl;
        limit_except GET { deny all; }
        if ($arg_x) { set $y 1; }
    }
}
CONF

ok($t->ready, 'a shard');

my $health = $t->get('/health?write=1');
is($health->{status}, 503, '  without a map accepts nothing');
is($health->json->{status}, 'no-map', '  which is the reason');
is($health->json->{writable}, JSON::PP::false, '  in other words');
is($t->get('/health')->{status}, 200, '  it is not asked for new URLs');
my $add = $t->post('/add?url=http://a.test/', '');
is($add->{status}, 503, '  an add');
is($add->json->{detail}, 'the shard has no map so far', '  with the reason');
ok(wait_until(5, sub {
    $t->error_log =~ /\[warn\].*shard 0 has no map so far/;
}), '  in the log');

my $uuid = $t->get('/stats')->json->{uuid};

is($t->post("/admin?$_", map_text(1, $uuid))->{status}, 400, "not with $_")
    for 'shards=0', 'shard=0&shard=0', 'shard', 'shard=', 'shard=4096';
is($t->post("/admin$_", map_text(1, $uuid), Origin => 'http://a.test')
    ->{status}, 403, "a page of another site cannot POST /admin$_")
    for '', '?promote';
is($t->get('/cluster')->{status}, 404, '  nothing was done');
is($t->post('/admin?promote', '', Origin => 'http://localhost')->{status}, 409,
    'its own pages can');
my $denied = $t->post('/denied', map_text(1, $uuid));
is($denied->{status}, 403, 'limit_except');
is($denied->{headers}{'content-type'}, 'application/problem+json',
    '  as a problem');
is($t->get('/denied?x=1')->json->{detail}, 'there is no map so far',
    '  with an if in its location');
is($t->post('/limited', map_text(1, $uuid))->{status}, 204, 'has a map');
is($t->post('/admin', map_text(1, $uuid))->{status}, 204, '  once more');
ok($t->ready(write => 1), '  and accepts new URLs');

my $from = length $t->error_log;
ok($t->reload($t->{conf}), 'a reload');
unlike(substr($t->error_log, $from), qr/no map so far/,
    '  does not miss the file: the journal has the map');

$t->disk('stall 1');

my $text = map_text(2, $uuid);
my $post = IO::Socket::INET->new('127.0.0.1:' . $t->port);

print $post "POST /admin HTTP/1.0\r\nContent-Length: ", length $text,
    "\r\n\r\n$text";
$post->flush;

ok(wait_until(2, sub { $t->get('/stats')->json->{map_version} == 2 }),
    'the next one is adopted, and not durable');
is($t->get($_)->{status}, 503, "  GET $_ does not show it")
    for qw(/cluster /admin);
ok(!IO::Select->new($post)->can_read(0.1), '  the POST waits');

$t->disk('');
like(<$post>, qr/^HTTP\S+ 204/, '  the POST is answered');
close $post;
like($t->get($_)->{headers}{etag}, qr/^"2-/, "  and GET $_ shows it")
    for qw(/cluster /admin);

# an erasure of a site, of a router with that map: it has begun when the next
# map comes, and must not be called done

my ($digest) = $t->get('/cluster')->{headers}{etag} =~ /-(\w{32})/;

$t->disk('random 1');

my $erase = IO::Socket::INET->new('127.0.0.1:' . $t->port);

print $erase "POST /erase?site=a.test HTTP/1.0\r\nContent-Length: 0\r\n"
    . "Urlstore-Map: @{['c' x 32]} 0 2 $digest\r\n\r\n";
$erase->flush;

ok(!IO::Select->new($erase)->can_read(0.3), 'an erasure waits');
delete $t->{client};
is($t->post('/admin', map_text(3, $uuid))->{status}, 204, '  a new map');
$t->disk('');
like(<$erase>, qr/^HTTP\S+ 421/, '  the erasure is of the old one');
close $erase;
is($t->get('/erase/1')->json->{listed}, 0, '  nothing was erased');

$t->stop;


# --- a router

unlink $t->dir . '/map.json';

$t->run(<<'CONF');
urlstore_cluster crawl %%DIR%%/map.json;
upstream us_0 { server 127.0.0.1:%%PORT1%%; }
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_route crawl; }
    location = /admin { urlstore_cluster_admin crawl; }
}
CONF

is($t->get('/admin')->{status}, 404, 'a router without a map');
is($t->post('/admin', map_text(1, $uuid))->{status}, 204, '  has one');
like($t->get('/admin')->{headers}{etag}, qr/^"1-/, '  shows it');
is(-s $t->dir . '/map.json', length $t->get('/admin')->{body},
    '  and has its file');

# a node that this nginx has no upstream for

my $more = map_text(2, $uuid) =~ s/"us_0"/"us_0","us_new"/r;
my $no = qr/no upstream "us_new" for a node of its map; "urlstore cluster/;

for my $args ('?check=1', '') {
    my $r = $t->post("/admin$args", $more);
    is($r->{status}, 409, "/admin$args: a node without an upstream");
    like(json($r->{body})->{detail}, $no, '  as nginx -t says');
}

like($t->get('/admin')->{headers}{etag}, qr/^"1-/, '  the map before stays');
like(slurp($t->dir . '/map.json'), qr/"version": 1/, '  in the file, too');

my $before = slurp($t->dir . '/map.json');
$t->allow(qr/is not used/);
spew($t->dir . '/map.new', $more);
rename $t->dir . '/map.new', $t->dir . '/map.json';
ok(wait_until(10, sub { $t->get('/admin'); $t->error_log =~ $no }),
    'the same in a file that was edited');
like($t->get('/admin')->{headers}{etag}, qr/^"1-/, '  the map before stays');
spew($t->dir . '/map.new', $before);
rename $t->dir . '/map.new', $t->dir . '/map.json';

is($t->post('/admin?check=1', map_text(2, $uuid))->{status}, 204,
    'a map that may be posted');
like(slurp($t->dir . '/map.json'), qr/"version": 1/, '  was not');

$t->disk('directory 5');
my $r = $t->post('/admin', map_text(2, $uuid));
is($r->{status}, 500, 'a directory that is not synced');
like(json($r->{body})->{detail},
    qr{map\.json": fsync of the directory failed}, '  with the reason');

$t->disk('');
is($t->post('/admin', map_text(2, $uuid))->{status}, 204, '  once more');
is(scalar(() = glob $t->dir . '/map.json.*'), 0, '  no other file is left');
