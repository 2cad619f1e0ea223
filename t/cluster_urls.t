#!/usr/bin/perl

# GET /urls of a router: one list over all shards, by a cursor; a shard that
# does not answer; the list of one shard.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use UrlStore::Cluster;
use UrlStore::Test;

my $c = UrlStore::Cluster->new(shards => 3, zone => 'marks=visited revisit=1m')
    ->run;
my $t = $c->t;

sub text { return $t->get(@_)->{body} }

# the lines, and the members of the last one

sub list
{
    my (@lines) = split /(?<=\n)/, text(@_);

    my ($cursor, $more, $absent) = (pop @lines // '')
        =~ /^# cursor=(\S+) more=([01])(?: unavailable=(\S+))?$/
        or return ([@lines], '', '', '');

    return (\@lines, $cursor, $more, $absent // '');
}

# all of them, by requests of so many lines

sub whole
{
    my ($limit, $args) = @_;

    my ($n, $cursor, @all) = (0, '');

    while ($n++ < 200) {
        my ($lines, $next, $more) = list("/urls?limit=$limit"
            . ($cursor ne '' ? "&cursor=$cursor" : '') . ($args // ''));

        push @all, @$lines;
        $cursor = $next;
        last if !$more;
    }

    return ($cursor, $n, @all);
}


my ($lines, $cursor, $more, $absent) = list('/urls');
is("@$lines|$more|$absent", '|0|', 'empty shards');
like($cursor, qr/^[A-Za-z0-9_-]{8}$/, '  have a cursor');

my @url = map { "http://h$_.com/p" } 0 .. 299;
my %id = map { (split /\t/)[2, 0] } split /\n/,
    $t->post('/add', join '', map { "$_\n" } @url)->{body};

my @by_id = map { "$id{$_}\t$_\n" } sort { $id{$a} <=> $id{$b} } @url;

($lines, $cursor, $more) = list("/urls?cursor=$cursor");
is(join('', @$lines), join('', @by_id), 'what is new since, by shard and id');
is($more, 0, '  all of it');
($lines, my $same) = list("/urls?cursor=$cursor");
is("@$lines", '', '  then nothing');
is($same, $cursor, '  by the same cursor');

my ($last, $n, @all) = whole(37);
is(join('', sort @all), join('', sort @by_id), 'in parts: each URL once');
cmp_ok($n, '<', 15, '  in few requests');
is(substr($last, 8), substr($cursor, 8),
    '  up to the same place, if not the same turn');

($lines, my $next) = list('/urls?limit=3');
my ($then) = list("/urls?limit=3&cursor=$next");
isnt((split /\t/, $then->[0])[0] >> 40, (split /\t/, $lines->[0])[0] >> 40,
    'the next request begins with the next shard');

is(join('', @{ (list('/urls?from=0'))[0] }), join('', @by_id),
    'from=0 is the beginning');


# what is selected

my %some = map { $_ => 1 } @url[3, 77, 150];

$t->post('/mark/visited', join '', map { "$_\n" } keys %some);
$t->post('/claim?clear=1', join '', map { "$_\n" } keys %some);
$t->forget('/url/' . $id{$url[77]});

is(join('', sort @{ (list('/urls?mark=visited'))[0] }),
    join('', sort grep { !/\t$url[77]\n/ && $some{(split /\s/)[1]} } @by_id),
    'mark');
is(scalar @{ (list('/urls?mark=!visited'))[0] }, 297, '  without');
is(scalar @{ (list('/urls?older=1h'))[0] }, 2, 'older');
is_deeply((list("/urls?prefix=http://h15."))[0],
    ["$id{'http://h15.com/p'}\thttp://h15.com/p\n"], 'prefix');
is_deeply((list("/urls?site=h16.com"))[0],
    ["$id{'http://h16.com/p'}\thttp://h16.com/p\n"], 'site');
is_deeply((list("/urls?deleted=1"))[0],
    [map { s/\thttp:\/\/h77\.com.*/\t-/r } @by_id], 'deleted ids');
like((list('/urls?times=1&limit=1'))[0][0], qr/^\d+\t\S+\t\d{10}$/, 'times');
is_deeply([sort(map { /\t-\t(.*)/ } @{ (list('/urls?deleted=1&times=1'))[0] })],
    ['-'], '  a deleted URL has none');

my $r = $t->get('/urls?mark=other');
is($r->{status}, 404, 'a mark that is not declared');
like(json($r->{body})->{detail}, qr/"other"/, '  as the shard says');
$r = $t->get('/urls?new_sites=1');
is($r->{status}, 400, 'sites are divided, too');
is(json($r->{body})->{reason}, 'key', '  by the key');


# formats

$r = json(text('/urls?limit=2', Accept => 'application/json'));
is(scalar @{ $r->{results} }, 2, 'JSON');
like($r->{cursor}, qr/^[\w-]+$/, '  its cursor');
is($r->{more}, JSON::PP::true, '  and more');
my @nd = map { json($_) } split /\n/, text('/urls?limit=2',
    Accept => 'application/x-ndjson');
is_deeply([map { join ' ', sort keys %$_ } @nd],
    ['id url', 'id url', 'cursor more'], 'NDJSON');
is($t->request('HEAD', '/urls')->{status}, 200, 'HEAD');


# one shard

my $first = (grep { $_ >> 40 == 2 } sort { $a <=> $b } values %id)[1];

is(text("/urls?from=$first&limit=2&summary=1"), $c->shard(2)->request('GET',
    "/urls?from=$first&limit=2&summary=1")->{body}, 'from=ID is one shard');
is(text("/urls?from=$first", Accept => 'application/json'),
    $c->shard(2)->request('GET', "/urls?from=$first", undef,
    Accept => 'application/json')->{body}, '  in JSON');
is(text("/urls?from=$first&mark=visited"), $c->shard(2)->request('GET',
    "/urls?from=$first&mark=visited")->{body}, '  with a mark');
is($t->get('/urls?from=' . (7 << 40))->{status}, 503,
    '  that the map does not have');


# what is refused

is($t->get('/urls?limit=0')->{status}, 400, 'limit');
is($t->get('/urls?from=x')->{status}, 400, 'from');
is($t->get('/urls?from=' . (4096 << 40))->{status}, 400,
    'a shard that no map can have');
is($t->get("/urls?from=1&cursor=$cursor")->{status}, 400, 'from and cursor');
is($t->get("/urls?cursor=$_")->{status}, 400, 'a cursor: ' . substr $_, 0, 9)
    for 'x', '1', 'AAAAAAAA', '=', 'x' x 5000, substr($cursor, 0, -1);
like(json(text('/urls?cursor=AQAAAAAA'))->{detail}, qr/another cluster/,
    '  of another cluster');
is($c->shard(1)->request('GET', "/urls?cursor=$cursor")->{status}, 400,
    '  at a shard');


# replies that are longer than a call reads

my @long = map { "http://h$_.com/" . 'l' x 8000 } 0 .. 599;
$t->post('/add', join '', map { "$_\n" } @$_)
    for [@long[0 .. 299]], [@long[300 .. 599]];

($lines, $next, $more) = list("/urls?cursor=$cursor&limit=100000");
is(scalar @$lines, 600, 'a long list is whole');
is($more, 0, '  to the end');
ok(join('', sort map { (split /\s/)[1] } @$lines) eq join('', sort @long),
    '  each URL once');


# a shard that does not answer

ok($c->down(1), 'a shard is down');

($lines, my $part, $more, $absent) = list('/urls');
is("$absent $more", '1 1', 'it is named');
is(scalar(grep { $_ >> 40 == 1 } map { (split /\t/)[0] } @$lines), 0,
    '  its URLs are not there');
is_deeply(json(text('/urls', Accept => 'application/json'))->{unavailable},
    [1], '  in JSON');
is($t->get('/urls?from=' . (1 << 40))->{status}, 503, 'its own list');

ok($c->down, 'it is back');
($lines) = list("/urls?cursor=$part&limit=1000");
is(join('', @$lines), $c->shard(1)->request('GET', '/urls?limit=1000')->{body},
    'it goes on where it was');

ok($c->down(0 .. 2), 'all are down');
$r = $t->get('/urls');
is($r->{status}, 503, '  no list');
is(json($r->{body})->{reason}, 'shard:0', '  of the first');
