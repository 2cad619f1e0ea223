#!/usr/bin/perl

# Idempotency-Key over routers: the shards remember what was new to a key, so a
# retry may come by any router; equal URLs in two parts of a batch; users of a
# router; shards that do not answer, and owners that change.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use MIME::Base64 qw(encode_base64);
use UrlStore::Cluster;
use UrlStore::Test;

my $c = UrlStore::Cluster->new(shards => 3, key => 'site',
    zone => 'revisit=1m', http => 'urlstore_max_batch 100000;',
    server => <<'CONF');
    location /users/ {
        auth_basic users;
        auth_basic_user_file %%DIR%%/users;
        urlstore_route crawl;
    }
}
server {
    listen 127.0.0.1:%%PORT4%%;
    location / { urlstore_route crawl; }
CONF

my $t = $c->t;

spew($t->dir . '/users', "ann:{PLAIN}a\nbob:{PLAIN}b\n");
$c->run;

my ($r, $again);
my $urls = join '', map { "http://h" . $_ % 50 . ".com/$_\n" } 0 .. 299;


# --- a batch for all shards

$r = post('/add', $urls . $urls, 'all');
is(count($r), 'new 300 seen 300', 'a batch for three shards');
is($r->{headers}{'idempotency-status'}, 'repeated', '  to a key');
$again = post('/add', $urls . $urls, 'all');
is($again->{body}, $r->{body}, '  is answered so again');
is($again->{headers}{'idempotency-status'}, 'repeated', '  as it says');
is($t->client(4)->request('POST', '/add', $urls . $urls,
    'Idempotency-Key' => 'all')->{body}, $r->{body}, '  by another router');
is($c->shard(1)->request('GET', '/stats')->json->{idempotency_repeated} > 0, 1,
    '  a shard counts it');
is(count(post('/add', $urls, 'other')), 'seen 300', 'another key');
is(count($t->post('/add', $urls)), 'seen 300', '  and none');

$r = post('/add?url=http://single.com/', '', 'single');
is("$r->{status} $r->{headers}{location}",
    join(' ', map { ($_->{status}, $_->{headers}{location}) }
        post('/add?url=http://single.com/', '', 'single')), 'a single one');
is($r->{status}, 201, '  which is new');


# --- equal URLs in two parts of a lane, which has 8,192 items

my $long = join '', map { "http://h1.com/long/" . $_ % 9000 . "\n" }
    0 .. 19999;

for my $try (1 .. 3) {
    $r = post('/add?brief=1', $long, 'long');
    is(count($r), 'new 9000 seen 11000', "each once, try $try");
    my ($last) = $r->{body} =~ /\tnew\n(?!.*\tnew\n)(.*)/s;
    is(scalar(() = $last =~ /\n/g), 11000, '  the first of them');
}


# --- users of the router

for my $user ('ann:a', 'bob:b') {
    is(count($t->post('/users/add', "http://user.com/\n",
        'Idempotency-Key' => 'u', Authorization => 'Basic '
            . encode_base64($user, ''))),
        $user eq 'ann:a' ? 'new 1' : 'seen 1', "user $user, try $_") for 1, 2;
}

is(count(post('/add', "http://user.com/\n", 'u')), 'seen 1', 'nobody');


# --- claims

is(count($t->post('/claim?clear=1', "http://h1.com/1\nhttp://h2.com/2\n")),
    'claimed 2', 'claims are given back');
is(count(post('/add?older=30d', "http://h1.com/1\nhttp://h2.com/2\n"
    . "http://h1.com/1\n", 'due')), 'due 2 seen 1', 'due, try ' . $_) for 1, 2;


# --- a shard that is away; owners that change

my $more = join '', map { "http://h" . $_ % 50 . ".com/more/$_\n" } 0 .. 99;

$c->down(2);
$r = post('/add', $more, 'away');
like(count($r), qr/^new \d+ unavailable \d+$/, 'a shard is away');
ok(!exists $r->{headers}{'idempotency-status'}, '  no promise');
$c->down;
$r = post('/add', $more, 'away');
is(count($r), 'new 100', '  it is there again: all is new');
is($r->{headers}{'idempotency-status'}, 'repeated', '  as it says');

$c->map(2, ['0-4095', 0, 1, 2]);
$r = post('/add', $more, 'away');
is(count($r), 'seen 100', 'other owners');
ok(!exists $r->{headers}{'idempotency-status'},
    '  of what others had, nothing is promised');


sub post
{
    my ($path, $body, $key) = @_;

    return $t->post($path, $body, 'Idempotency-Key' => $key);
}


sub count
{
    my ($answer) = @_;
    my %n;

    $n{$_}++ for $answer->{body} =~ /^[\d-]+\t(\w+)/mg;

    return join ' ', map { "$_ $n{$_}" } sort keys %n;
}
