#!/usr/bin/perl

# A router over shards of which one has given its slots to another: new URLs go
# to the owner, after the former owner has denied them; what the former owner
# has stays there; and back again.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use UrlStore::Test;

my $t = UrlStore::Test->new;
my $json = JSON::PP->new->canonical;
my @uuid;

$t->run(<<'CONF' . join '', map { <<CONF } 0, 1);
urlstore_cluster crawl %%DIR%%/map.json;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_route crawl; }
}
CONF
urlstore_zone u$_ 16m path=%%DIR%%/$_ cluster=crawl shard=$_ node=us_$_;
upstream us_$_ { server 127.0.0.1:%%PORT@{[$_ + 1]}%%; keepalive 8; }
server {
    listen 127.0.0.1:%%PORT@{[$_ + 1]}%%;
    location / { urlstore_api u$_; }
}
CONF

@uuid = map { my $n = $_; wait_until(10, sub {
    $t->client($n)->request('GET', '/health')->{status} == 200
}); $t->client($n)->request('GET', '/stats')->json->{uuid} } 1, 2;


# a new map, and until the router and the shards have it

sub map_is
{
    my ($version, @slots) = @_;

    spew($t->dir . '/map.new', $json->encode({
        cluster => 'c' x 32, version => $version, key => 'site',
        norm => 'crawler/1 unicode=15.0 www=first',
        shards => { map { $_ => { uuid => $uuid[$_], nodes => ["us_$_"] } }
            0, 1 },
        slots => \@slots }));
    rename $t->dir . '/map.new', $t->dir . '/map.json';

    return wait_until(20, sub {
        for my $n (1, 2) {
            my $r = $t->client($n)->request('GET', '/cluster');
            return 0 if $r->{status} != 200 || $r->json->{version} != $version;
        }

        # the worker that answers has it, too

        return $t->get('/cluster')->json->{version} == $version;
    });
}


sub text { return $t->post(@_)->{body} }

my $one = 1 << 40;

ok(map_is(1, ['0-4095', 0]), 'shard 0 owns all');
is(text('/add', "http://www.a.com/\nhttp://b.com/1\n"),
    "0\tnew\thttp://www.a.com/\n1\tnew\thttp://b.com/1\n", 'it has all');

ok(map_is(2, ['0-4095', 1, 0]), 'shard 1 owns all');
is(text('/add?sites=1', "http://a.com/\nhttp://a.com/n\nhttp://b.com/1\n"
    . "http://c.com/\nhttp://a.com/n\n"),
    "0\tseen\thttp://www.a.com/\tsite-known\n"
    . "$one\tnew\thttp://www.a.com/n\tsite-known\n"
    . "1\tseen\thttp://b.com/1\tsite-known\n"
    . ($one + 1) . "\tnew\thttp://c.com/\tsite-new\n"
    . "$one\tseen\thttp://www.a.com/n\tsite-known\n",
    'what is there stays, as it was spelled; what is new goes to the owner');
is(text('/seen', "http://b.com/1\nhttp://c.com/\nhttp://a.com/x\n"),
    "1\tseen\thttp://b.com/1\n" . ($one + 1) . "\tseen\thttp://c.com/\n"
    . "-\tunseen\thttp://www.a.com/x\n", 'look-ups ask both');
is($t->post('/add?url=http://b.com/1')->{status}, 200, 'a single one');
is($t->get('/url/1')->{body}, "http://b.com/1\n", 'ids stay where they are');
is($t->forget('/url/1')->{status}, 204, 'a delete in a sealed slot');
is(text('/add', "http://b.com/1\n"), ($one + 2) . "\tnew\thttp://b.com/1\n",
    '  and the URL again, from the owner');

ok(map_is(3, ['0-4095', 0, 1]), 'back again');
is(text('/add', "http://b.com/1\nhttp://c.com/2\nhttp://a.com/n\n"),
    ($one + 2) . "\tseen\thttp://b.com/1\n2\tnew\thttp://c.com/2\n"
    . "$one\tseen\thttp://www.a.com/n\n", 'ids of both remain');
is(text('/add', join '', map { "http://d$_.com/\n" } 1 .. 3000),
    join('', map { $_ + 2 . "\tnew\thttp://d$_.com/\n" } 1 .. 3000),
    'a large batch in two rounds');
