#!/usr/bin/perl

# mode=lookup: id -> URL only, from a directory that somebody else owns or
# nobody; a newer state at a reload.

use strict;
use warnings;

use lib 't/lib';

use UrlStore::Test;

my $lines = corpus('trackawesomelist_md', 3000);

my $t = UrlStore::Test->new(workers => 2)->run(
    zone_conf('64m path=%%DIR%%/data sync=always'));

ok($t->ready, 'ready');
is($t->post('/add', join("\n", @$lines[0 .. 999]) . "\n")->{status}, 200,
    'added');
is($t->forget('/url/5')->{status}, 204, 'one forgotten');

my $next = $t->get('/stats')->json->{next_id};

my $ro = UrlStore::Test->new(workers => 2)->run(
    zone_conf("64m path=$t->{dir}/data mode=lookup"));

ok($ro->ready, 'a reader is ready beside the owner');

my $ids = join ',', 0 .. $next - 1;
my @want = ('/url/' . $ids, Accept => 'text/plain');

is($ro->get(@want)->{body}, $t->get(@want)->{body}, 'the same answers');
is($ro->get('/url/5')->{status}, 410, 'the forgotten one is gone');
is($ro->get("/url/$next")->{status}, 404, 'no such id, so far');

for my $a ($ro->post('/add', "http://example.com/\n"),
           $ro->get('/seen?url=http://example.com/'),
           $ro->forget('/url/1'))
{
    is($a->{status}, 503, 'refused');
    like($a->json->{detail}, qr/mode=lookup/, 'with the reason');
}

# nothing is denied for want of an index

for my $filter ('site=example.com', 'new_sites=1') {
    my $a = $ro->get("/urls?$filter");

    is($a->{status}, 400, "/urls?$filter");
    like($a->json->{detail}, qr/mode=lookup/, 'with the reason');
}

# what the page asks for

is($ro->get('/')->{status}, 200, 'the page');
is($ro->get('/stats')->json->{ready}, JSON::PP::true(), 'is ready');
is($ro->get('/stats')->json->{writable}, JSON::PP::false(), 'to read');
like($ro->get('/url/0', Accept => 'application/json')->json->{url},
    qr/^http/, 'knows ids');

cmp_ok($ro->get('/stats')->json->{parts}{index}, '<=',
    $t->get('/stats')->json->{parts}{index}, 'there is no index');

is($t->post('/add', join("\n", @$lines[1000 .. 1999]) . "\n")->{status}, 200,
    'more is added');
ok($ro->reload, 'the reader reloads');
ok(wait_until(10, sub {
    $ro->ready && $ro->get("/url/$next")->{status} == 200
}), 'and has what is new');

$next = $t->get('/stats')->json->{next_id};
@want = ('/url/' . join(',', 0 .. $next - 1), Accept => 'text/plain');
is($ro->get(@want)->{body}, $t->get(@want)->{body}, 'the same answers');

ok($t->stop, 'the owner ends');
ok($ro->reload, 'the reader reloads');
ok($ro->ready, 'without an owner');
is(length $ro->get('/url/0')->{body}, length("$lines->[0]\n"), 'it reads');
