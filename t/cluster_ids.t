#!/usr/bin/perl

# What a router does by id: lists of ids, marks, claims; over three shards.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use UrlStore::Cluster;
use UrlStore::FakeShard;
use UrlStore::Test;

my $c = UrlStore::Cluster->new(shards => 3, key => 'site',
    zone => 'marks=visited,queued revisit=1m',
    location => 'urlstore_max_reply 200k;', server => <<'CONF')->run;
    location /large/ { urlstore_route crawl; urlstore_max_reply 4m; }
CONF
my $t = $c->t;

sub id { return $_[0] << 40 | $_[1] }
sub text { return $t->request(@_)->{body} }


# URLs of the three shards, in turns

my @url = map { "http://h$_.com/" } 0 .. 29;
my @id = map { (split /\t/)[0] } split /\n/, text('POST', '/add',
    join '', map { "$_\n" } @url);

my %shards = map { ($_ >> 40) => 1 } @id;
is_deeply([sort keys %shards], [0, 1, 2], 'URLs in all shards');


# --- lists of ids

is(text('POST', '/url', join '', map { "$_\n" } reverse @id),
    join('', map { "$id[$_]\t$url[$_]\n" } reverse 0 .. 29),
    'a list, in the order of the input');
is(text('GET', "/url/$id[3],$id[1]"), "$id[3]\t$url[3]\n$id[1]\t$url[1]\n",
    '  in the path');

$t->forget("/url/$id[7]");

my @odd = ($id[2], $id[7], id(1, 1000), id(3, 0), id(5000, 0), '9' x 32);

is(text('POST', '/url', join '', map { "$_\n" } @odd),
    "$id[2]\t$url[2]\n$id[7]\t-\tdeleted\n$odd[2]\t-\tunknown\n"
    . "$odd[3]\t-\tunavailable\n$odd[4]\t-\tunknown\n$odd[5]\t-\tunknown\n",
    'deleted, unknown, of a shard that the map lacks');
is_deeply(json(text('POST', '/url', "[$id[2],$id[7],$odd[2],$odd[3]]",
    'Content-Type' => 'application/json')),
    { results => [{ id => $id[2], url => $url[2], status => 'ok' },
        { id => $id[7], url => undef, status => 'deleted' },
        { id => $odd[2], url => undef, status => 'unknown' },
        { id => $odd[3], url => undef, status => 'unavailable' }] }, 'JSON');
is(text('GET', "/url/$id[2],$odd[2]", undef,
    Accept => 'application/x-ndjson'),
    qq({"id":$id[2],"url":"$url[2]","status":"ok"}\n)
    . qq({"id":$odd[2],"url":null,"status":"unknown"}\n), 'NDJSON');
is($t->request('HEAD', "/url/$id[2],$id[3]")->{status}, 200, 'HEAD');
like(text('POST', '/url?times=1', "$id[2]\n$id[7]\n"),
    qr/^$id[2]\t$url[2]\t\d{10}\n$id[7]\t-\tdeleted\n$/, 'times');
is(text('POST', '/url', ''), '', 'no id');
is($t->post('/url', "$id[2]\nx\n")->{status}, 400, 'not an id');
is($t->get("/url/$id[2],x")->{status}, 400, '  in the path');
is($t->get('/url/' . id(3, 0) . ',' . id(3, 1))->{status}, 503,
    'only ids of a shard that the map lacks');

# a reply of more bytes than urlstore_max_reply

my @long = map { my $n = $_; "http://h$n.com/" . 'l' x 4000 } 0 .. 29;
my @long_id = map { (split /\t/)[0] } split /\n/, text('POST', '/add',
    join '', map { "$_\n" } @long);

my $r = $t->post('/url', join '', map { "$_\n" } (@long_id) x 2);
is($r->{status}, 413, 'more than urlstore_max_reply');
is(json($r->{body})->{detail}, 'the URLs have more than 204800 bytes '
    . '(urlstore_max_reply): ask for fewer ids', '  as it says');
is(text('POST', '/url', join '', map { "$_\n" } @long_id),
    join('', map { "$long_id[$_]\t$long[$_]\n" } 0 .. 29),
    '  a list of as many bytes as are allowed');

# replies of more than a call reads: the rest is asked again

my @many = (@long_id) x 30;
$r = $t->post('/large/url', join '', map { "$_\n" } @many);
is($r->{status}, 200, 'a list of more bytes than a call reads');
ok($r->{body} eq join('', map { "$long_id[$_ % 30]\t$long[$_ % 30]\n" }
    0 .. 899), '  is whole');


# --- marks

is(text('POST', '/mark/visited', "$url[0]\n$id[1]\nhttp://no.com/\n$id[7]\n"
    . id(2, 1000) . "\n" . id(3, 0) . "\n" . '9' x 32 . "\nftp://x/\n"
    . "$url[0]\n"),
    "$id[0]\tset\t$url[0]\n$id[1]\tset\t$url[1]\n"
    . "-\tunknown\thttp://no.com/\n$id[7]\tdeleted\t-\n-\tunknown\t-\n"
    . "-\tunavailable\tshard:3\n-\tunknown\t-\n-\tinvalid\tscheme\n"
    . "$id[0]\tset\t$url[0]\n", 'marks, by id and by URL');

sub marked
{
    return join ' ', sort map {
        map { (split /\t/)[0] } split /\n/, $c->shard($_)->request('GET',
            '/urls?mark=visited')->{body}
    } 0 .. 2;
}

is(marked(), join(' ', sort @id[0, 1]), '  the shards have them');
is(text('DELETE', '/mark/visited', "$url[0]\n"), "$id[0]\tclear\t$url[0]\n",
    'cleared by DELETE');
is(text('POST', '/mark/visited?clear=1&brief=1', "$id[1]\n$id[1]\n"),
    "$id[1]\tclear\n$id[1]\tclear\n", '  by clear=1; brief');
is(marked(), '', '  in the shards');
like(text('POST', '/mark/visited?summary=1', "$url[3]\nhttp://no.com/\n"),
    qr/^# set=1 clear=0 unknown=1 deleted=0 errors=0 next_ids=\S+ epochs=/m,
    'a summary');
is_deeply(json(text('POST', '/mark/queued', '[' . $id[4] . ',"x"]',
    'Content-Type' => 'application/json'))->{results},
    [{ id => $id[4], status => 'set', url => $url[4] },
        { id => undef, status => 'invalid', reason => 'no-base' }], 'JSON');
$r = $t->post("/mark/queued?url=$url[4]");
is($r->{status}, 200, 'a single URL');
is(json($r->{body})->{id}, $id[4], '  its id');
ok(json($r->{body})->{next_id} > $id[4], '  next_id of its shard');
$r = $t->post('/mark/queued?id=' . id(4000, 1));
is($r->{status}, 503, 'a single id of a shard that the map lacks');
$r = $t->post('/mark/queued?id=' . '9' x 32);
is(json($r->{body})->{status}, 'unknown', '  of no shard');
is(json($r->{body})->{next_id}, undef, '  which has no next_id');
$r = $t->post('/mark/other', "$id[4]\n");
is($r->{status}, 404, 'a mark that is not declared');
like(json($r->{body})->{detail}, qr/"other"/, '  as the shard says');
is($t->post("/mark/$_", "$id[4]\n")->{status}, 400, '  a name that is escaped')
    for '%2F%3Fclear', 'queued%3Fclear%3D1';


# --- older=, times=1, claims

like(text('POST', '/add?times=1', "$url[5]\nhttp://new.com/\n"),
    qr{^$id[5]\tseen\t$url[5]\t\d{10}\n\d+\tnew\thttp://new.com/\t-\n$},
    'times of claims');

my $ago = int(time / 60) * 60 - 40 * 86400;

is(text('POST', "/claim?at=$ago", "$id[5]\n$url[6]\n"
    . "http://no.com/\n"), "$id[5]\tclaimed\t$url[5]\n"
    . "$id[6]\tclaimed\t$url[6]\n-\tunknown\thttp://no.com/\n", 'claims');
like(text('POST', '/seen?older=30d&times=1', "$url[5]\n$url[8]\n"),
    qr/^$id[5]\tdue\t$url[5]\t$ago\n$id[8]\tseen\t$url[8]\t\d{10}\n$/,
    '  by which a URL is due');
is(text('POST', '/add?older=30d&only=new', "$url[5]\n$url[8]\n$url[6]\n"),
    "$id[5]\tdue\t$url[5]\t0\n$id[6]\tdue\t$url[6]\t2\n", '  claimed again');
like(text('POST', '/add?older=30d&summary=1', "$url[5]\n"),
    qr/\tseen\t.*\n# new=0 seen=1 unseen=0 due=0 /, '  then it is not');
is(text('POST', '/claim?clear=1', "$url[5]\n"), "$id[5]\tclaimed\t$url[5]\n",
    '  given back');
is(json(text('POST', "/add?older=1h&url=$url[5]"))->{status}, 'due',
    '  it is due at once');
is($t->post('/add?older=x', "$url[5]\n")->{status}, 400, 'not a duration');
is($t->post('/add?older=1s', "$url[5]\n")->{status}, 400, '  too short');
$r = $t->post('/add?older=60000d', "$url[5]\n");
is($r->{status}, 400, '  too long for the unit');
like(json($r->{body})->{detail}, qr/from 1m to/, '  as the shard says');

$t->stop;


# --- slots that have another owner: what the former one has is there

$c = UrlStore::Cluster->new(shards => 2, slots => [['0-4095', 0]],
    zone => 'marks=visited revisit=1m')->run;
$t = $c->t;

is(text('POST', '/add', "http://a.com/\n"), "0\tnew\thttp://a.com/\n",
    'shard 0 owns all');
ok($c->map(2, ['0-4095', 1, 0]), 'shard 1 does');

sub due { return text('POST', '/add?older=1h', @_) }

is(text('POST', '/add', "http://b.com/\n"), id(1, 0)
    . "\tnew\thttp://b.com/\n", 'a new URL');
is(text('POST', '/mark/visited', "http://a.com/\nhttp://b.com/\n"
    . "http://c.com/\n0\n"), "0\tset\thttp://a.com/\n" . id(1, 0)
    . "\tset\thttp://b.com/\n-\tunknown\thttp://c.com/\n"
    . "0\tset\thttp://a.com/\n", 'marks of what both have');
text('POST', '/claim?clear=1', "http://a.com/\nhttp://b.com/\n");
is(due("http://a.com/\nhttp://b.com/\nhttp://c.com/\n"),
    "0\tdue\thttp://a.com/\n" . id(1, 0) . "\tdue\thttp://b.com/\n"
    . id(1, 1) . "\tnew\thttp://c.com/\n", 'claims in both');
is(due("http://a.com/\nhttp://b.com/\n"), "0\tseen\thttp://a.com/\n"
    . id(1, 0) . "\tseen\thttp://b.com/\n", '  once');
is(text('POST', '/url', "0\n" . id(1, 0) . "\n"), "0\thttp://a.com/\n"
    . id(1, 0) . "\thttp://b.com/\n", 'a list');
