#!/usr/bin/perl

# GET /prefix and GET /site of a router: what is asked of several shards, and
# when one of them does not answer.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use UrlStore::Cluster;
use UrlStore::Test;

sub id { return $_[0] << 40 | $_[1] }

# the probes of a URL are in different shards

my $c = UrlStore::Cluster->new(shards => 3)->run;
my $t = $c->t;

sub prefix { return $t->get("/prefix?url=$_[0]", Accept => 'text/plain') }

my $url = 'http://a.com/1/2/3/4/5/6/7/8/9';
my @cuts = map { join '/', 'http://a.com', 1 .. $_, '' } 0 .. 8;

is(prefix($url)->{body}, "-\tunseen\t-\n", 'no prefix is stored');

my %id;

for my $cut (@cuts) {
    $id{$cut} = (split /\t/, $t->post('/add', "$cut\n")->{body})[0];
    is(prefix($url)->{body}, "$id{$cut}\tseen\t$cut\n", "the longest: $cut");
}

is_deeply([sort keys %{ { map { ($_ >> 40) => 1 } values %id } }], [0, 1, 2],
    'in all shards');
is_deeply(json($t->get("/prefix?url=$url")->{body}), { id => $id{$cuts[8]},
    status => 'seen', url => $cuts[8] }, 'JSON');
is($t->get('/prefix?url=ftp://x/')->{status}, 422, 'an invalid URL');
is($t->get('/prefix')->{status}, 400, 'no URL');

# a shorter one is the answer only if all longer ones were denied

my $longest = $id{$cuts[8]} >> 40;
my $other = (grep { $_ >> 40 != $longest } values %id)[0] >> 40;

ok($c->down($longest), 'the shard of the longest is down');
my $r = prefix($url);
is($r->{status}, 503, 'a shorter one is no answer');
is(json($r->{body})->{reason}, "shard:$longest", '  as it says');
is(json($r->{body})->{processed}, undef, '  of no batch');

ok($c->down($other), 'another shard is down');
is(prefix($cuts[8])->{body}, "$id{$cuts[8]}\tseen\t$cuts[8]\n",
    'a longer one is an answer');

is($t->get('/site/a.com')->{status}, 400, 'sites are divided');
is(json($t->get('/site/a.com')->{body})->{reason}, 'key', '  by the key');

$t->stop;


# --- a site whose slot has had three owners

$c = UrlStore::Cluster->new(shards => 3, key => 'site', zone => 'sites=on',
    slots => [['0-4095', 0]])->run;
$t = $c->t;

sub site { return $t->get("/site/$_[0]") }

is(site('a.com')->{status}, 404, 'a site that nobody knows');
is(site('a:x')->{status}, 400, 'no host');

$t->post('/add', "http://www.a.com/\nhttp://a.com/1\n");
is_deeply(json(site('a.com')->{body}), { site => 'a.com', first => 0,
    spelling => 'www.a.com', www => JSON::PP::true, urls => 2, last => 1 },
    'of its owner');
is(site('www.a.com')->{body}, site('A.com')->{body}, '  in any spelling');
is($t->request('HEAD', '/site/a.com')->{status}, 200, '  HEAD');

ok($c->map(2, ['0-4095', 1, 0]), 'another owner');
$t->post('/add', "http://a.com/2\nhttp://b.com/\n");
is_deeply(json(site('a.com')->{body}), { site => 'a.com', first => 0,
    spelling => 'www.a.com', www => JSON::PP::true, urls => 3,
    last => id(1, 0) }, 'both count, the former one spells');
is_deeply(json(site('b.com')->{body}), { site => 'b.com', first => id(1, 1),
    spelling => 'b.com', www => JSON::PP::false, urls => 1,
    last => id(1, 1) }, 'a site of the owner alone');

ok($c->map(3, ['0-4095', 2, 1, 0]), 'a third owner');
is_deeply(json(site('a.com')->{body}), { site => 'a.com', first => 0,
    spelling => 'www.a.com', www => JSON::PP::true, urls => 3,
    last => id(1, 0) }, 'it has none so far');

ok($c->down(1), 'one in the middle is down');
is_deeply(json(site('a.com')->{body}), { site => 'a.com', first => 0,
    spelling => 'www.a.com', www => JSON::PP::true },
    'the oldest knows the site, the number is not known');
$r = site('b.com');
is($r->{status}, 503, 'a site that the oldest does not know');
is(json($r->{body})->{reason}, 'shard:1', '  may be in this shard');
is(site('c.com')->{status}, 503, '  and so may one that nobody knows');

ok($c->down(0), 'the oldest is down');
is(site('b.com')->{status}, 503, 'what another one knows is no answer');
