#!/usr/bin/perl

# Data directories as commit 75e9eef wrote them (t/data/directories): the
# command and the server read all ids, marks, claims and deletes.
#
#     marks    manifest of version 1; sites=off, marks=visited,hot
#     claims   of version 2; sites=on, revisit=1h
#     shard    of version 3; shard 1 of a cluster, revisit=1h
#
# Each: 250 URLs, with deletes, and marks or claims, in a snapshot, in
# which claims have 2 bytes; 50 more in the journal; then nginx was killed.
#
#     www-first   what "urlstore import" made of the samples' URLs on these
#     www-strip   hosts, and of some others; www-*.txt is its dump. By
#                 Debian 12's list of public suffixes, www.homeoffice.gov.uk
#                 and homeoffice.gov.uk are two sites, www.gitbook.io and
#                 gitbook.io one. By that of today it is the other way round.

use strict;
use warnings;

use lib 't/lib';
use File::Copy qw(copy);
use UrlStore::Test;

my $t = UrlStore::Test->new(workers => 1);
my $urlstore = "$UrlStore::Test::TOP/build/urlstore";
my @text = ('Content-Type' => 'text/plain', Accept => 'text/plain');
my %first = (marks => 0, claims => 0, shard => 1 << 40);
my @dirs = sort keys %first;
my %www = map { $_ => slurp("t/data/directories/www-$_.txt") } qw(first strip);
my %changed = (first => 6, strip => 4);
my $ho = 'http://www.homeoffice.gov.uk';
my $bare = 'http://homeoffice.gov.uk';
my $path = '/agencies-public-bodies/crb/services/ub-search/';


# URL i, and what became of it; a site has the spelling of its first URL

my %spelled;

$spelled{$_ * $_ % 13} //= $_ % 3 ? '' : 'www.' for 0 .. 299;

sub url
{
    my ($i) = @_;
    my $site = $i * $i % 13;

    return sprintf 'http%s://%ss%d.test/%s/%d', $i % 2 ? 's' : '',
        $spelled{$site}, $site, join('-', map { $i * $_ % 251 } 1 .. 12), $i;
}


sub deleted
{
    my ($i) = @_;

    return $i % 11 == 3;
}


my %marked = (
    visited => sub { $_[0] % 5 == 0 },
    hot => sub { $_[0] % 7 == 0 && $_[0] > 0 },
);


# claimed when it was added, or at a time

sub claimed
{
    my ($i) = @_;
    my $at = 1_600_000_000 + $i % 4 * 50_000_000 + $i * 3600;

    return $i % 4 ? $at - $at % 3600 : 1_795_420_800;
}


# the lines "ID URL", with the third column of a store with claims

sub lines
{
    my ($dir) = @_;

    return join '', map {
        my @columns = ($first{$dir} + $_, deleted($_) ? '-' : url($_));

        push @columns, deleted($_) ? '-' : claimed($_) if $dir ne 'marks';
        join("\t", @columns) . "\n";
    } 0 .. 299;
}


# one that each command below may change

sub copied
{
    my ($from, $to) = @_;

    mkdir "$t->{dir}/$to";
    copy($_, "$t->{dir}/$to") or die "copy: $!"
        for glob "t/data/directories/$from/*";

    return "$t->{dir}/$to";
}


for my $dir (@dirs) {
    my $to = copied($dir, $dir);

    like(slurp("$to/manifest"), qr/^store norm crawler\/1 unicode=15\.0 www=/m,
        "$dir: keys by ICU 72");
}


# --- the command

for my $dir (@dirs) {
    my $times = $dir eq 'marks' ? '' : '--times';

    like(`$urlstore verify $t->{dir}/$dir`,
        qr/300 ids read back, 27 deleted, 0/, "$dir: verify");
    is(`$urlstore dump --deleted $times $t->{dir}/$dir`, lines($dir),
        '  dump');
}


for my $www (sort keys %www) {
    my $dir = copied("www-$www", $www);

    is(`$urlstore dump $dir`, $www{$www}, "www-$www: dump");
    like(my $said = `$urlstore verify --keys $dir`,
        qr/of $changed{$www} URLs "www\." counts otherwise/,
        '  verify counts');
    is(join('', map { "$_\n" } $said =~ /^changed  id (.*)/mg),
        join('', map { s/\t/ /r } grep { m{^[^45]\s.*/www\.(homeoffice|gitbook)}
        } split /^/, $www{$www}), '  and lists them');
    is(`echo $bare$path | $urlstore seen $dir`, "0\tseen\t$ho$path\n",
        '  a look-up, before anything was written');
}


# --- the server

if ($> == 0) {
    my ($uid, $gid) = (getpwnam('nobody'))[2, 3];
    chown $uid, $gid, map { ($_, glob("$_/*")) } map { "$t->{dir}/$_" } @dirs,
        keys %www;
}

$t->run(<<'CONF');
urlstore_cluster c %%DIR%%/map.json;
urlstore_zone marks 8m path=%%DIR%%/marks sync=always marks=visited,hot;
urlstore_zone claims 8m path=%%DIR%%/claims sync=always revisit=1h sites=on;
urlstore_zone shard 8m path=%%DIR%%/shard sync=always revisit=1h
              cluster=c shard=1 node=n1;
urlstore_zone except 8m path=%%DIR%%/except;
urlstore_www_except except two.test;
urlstore_zone first 8m path=%%DIR%%/first sites=on;
urlstore_zone strip 8m path=%%DIR%%/strip www=strip;
urlstore_zone copy 8m path=%%DIR%%/copy
              follow=http://127.0.0.1:%%PORT%%/first;
server {
    listen 127.0.0.1:%%PORT%%;
    location /except/ { urlstore_api except; }
    location /first/  { urlstore_api first; }
    location = /first/log { urlstore_log first; }
    location /copy/   { urlstore_api copy; }
    location /strip/  { urlstore_api strip; }
    location /marks/  { urlstore_api marks; }
    location /claims/ { urlstore_api claims; }
    location /shard/  { urlstore_api shard; }
}
CONF


# URLs, marks, claims and the map

sub all_is_there
{
    my ($round) = @_;

    for my $dir (@dirs) {
        ok($t->ready(below => "/$dir"), "$dir $round");

        my @ids = map { $first{$dir} + $_ } 0 .. 299;
        my $times = $dir eq 'marks' ? '' : '?times=1';

        is($t->post("/$dir/url$times", join("\n", @ids), @text)->{body},
            lines($dir) =~ s/\t-(\t-)?$/\t-\tdeleted/mgr, '  each id');
        is($t->post("/$dir/seen", join("\n", map { url($_) } 0 .. 299),
            @text)->{body}, join('', map { (deleted($_) ? "-\tunseen\t"
                : $first{$dir} + $_ . "\tseen\t") . url($_) . "\n" } 0 .. 299),
            '  each URL');

        my $stats = $t->get("/$dir/stats")->json;

        is("@$stats{qw(epoch deleted)}", '1 27', '  epoch and deletes');
    }

    for my $mark (sort keys %marked) {
        is($t->get("/marks/urls?mark=$mark&limit=1000", Accept =>
            'text/plain')->{body}, join('', map { "$_\t" . url($_) . "\n" }
            grep { !deleted($_) && $marked{$mark}->($_) } 0 .. 299),
            "  mark $mark");
    }

    is($t->get('/shard/cluster')->{headers}{etag} =~ /"(\d+)-/ && $1, 1,
        '  the map');
}


# --- hosts of which www. counts otherwise than before: no id is lost

sub answers
{
    my ($do, $zone, $urls, $lines, $name) = @_;

    is($t->post("/$zone/$do", $urls, @text)->{body}, $lines, $name);
}


for my $round ('from these files', 'after a restart') {
    for my $zone (sort keys %www) {
        ok($t->ready(below => "/$zone"), "www-$zone, $round");
        is($t->get("/$zone/urls?limit=70", Accept => 'text/plain')->{body},
            $www{$zone}, '  each id has the URL that it had');
        is($t->post("/$zone/seen", $www{$zone} =~ s/^\d+\t//mgr, @text)->{body},
            $www{$zone} =~ s/\t/\tseen\t/gr
            =~ s{^4\tseen.*}{0\tseen\t$ho$path}mr
            =~ s{^5\tseen.*}{3\tseen\t$ho/}mr,
            '  each URL is found, of two that are one the first');
        is($t->get("/$zone/stats")->json->{changed_urls},
            $round =~ /these/ ? $changed{$zone} : 0, '  /stats counts');
    }

    all_is_there($round);

    answers('seen', 'first', "$bare/crime/vetting-barring-scheme/\n"
        . "https://gitbook.io/\nhttps://gitbook.io/about\n",
        "2\tseen\t$ho/crime/vetting-barring-scheme/\n"
        . "-\tunseen\thttps://gitbook.io/\n"
        . "-\tunseen\thttps://gitbook.io/about\n", '  the other spellings');
    is_deeply($t->get('/first/site/homeoffice.gov.uk')->json, {
        site => 'homeoffice.gov.uk', first => 0, www => JSON::PP::true,
        spelling => 'www.homeoffice.gov.uk', urls => 6, last => 5 },
        '  one site, which has URLs of both spellings');
    is($t->get('/first/site/gitbook.io')->{status}, 404, '  two sites');
    is($t->get('/first/site/www.gitbook.io')->json->{urls}, 2,
        '  of which one has all URLs');

    # a replica decides as its primary, and counts nothing: see verify, below

    ok($t->ready(below => '/copy'), "a replica, $round");
    is($t->get('/copy/urls?limit=70', Accept => 'text/plain')->{body},
        $www{first}, '  each id');
    answers('seen', 'copy', "$bare$path\n$ho/\n",
        "0\tseen\t$ho$path\n3\tseen\t$ho/\n", '  by the list of today');
    is($t->get('/copy/seen?url=https://gitbook.io/')->{status}, 503,
        '  of which the other host is not known');
    is($t->get('/copy/stats')->json->{changed_urls}, undef,
        '  no changed_urls');
    ok(wait_until(10, sub { slurp("$t->{dir}/copy/manifest")
        =~ /^store norm crawler\/1 www=first$/m }),
        "  it gets its primary's signature");
    like(`$urlstore verify --keys $t->{dir}/copy`,
        qr/^changed  id 7 .* of $changed{first} URLs "www\."/ms,
        '  verify counts');

    last if $round =~ /restart/;

    ok($t->stop, 'stop');

    # as if the copy had been made under ICU, too

    my $copy = "$t->{dir}/copy/manifest";

    spew($copy, resealed(slurp($copy)
        =~ s{^store norm crawler/1}{store norm crawler/1 unicode=15.0}mr));
    ok($t->start, '  and start');
}

for my $dir (@dirs) {
    is($t->post("/$dir/add", "http://new.test/\n", @text)->{body},
        $first{$dir} + 300 . "\tnew\thttp://new.test/\n", "$dir: the next id");
}

answers('add', 'first', "$bare/new\nhttps://gitbook.io/\n",
    "70\tnew\t$ho/new\n71\tnew\thttps://gitbook.io/\n", 'added');
answers('add', 'strip', "$ho/new\nhttps://www.gitbook.io/\n",
    "70\tnew\t$bare/new\n71\tnew\thttps://www.gitbook.io/\n",
    '  with www=strip');

for my $zone (sort keys %www) {
    is($t->forget("/$zone/url/0")->{status}, 204, "$zone: a delete");
    answers('seen', $zone, "$ho$path\n", "4\tseen\t$bare$path\n",
        '  of the smaller id: the other one is found');
}

# of two sites, because this zone says so

$t->post('/except/add', "http://www.two.test/\nhttp://two.test/\n", @text);

ok($t->stop, 'stop');


# --- their keys are those of this version

for my $dir (@dirs, sort keys %www) {
    my $n = $changed{$dir} // 0;

    like($t->error_log, qr/"$dir".* "crawler\/1 unicode=15.0 www=.*of $n URLs/,
        "$dir: a line in the log");
    like(slurp("$t->{dir}/$dir/manifest"),
        qr/^store norm crawler\/1 www=(first|strip)$/m,
        '  its signature is new');
}

my $manifest = "$t->{dir}/except/manifest";

spew($manifest, resealed(slurp($manifest)
    =~ s{^store norm crawler/1}{store norm crawler/1 unicode=15.0}mr));
ok($t->start && $t->ready(below => '/except'), 'exceptions of www. are kept');
is($t->post('/except/seen', "http://www.two.test/\nhttp://two.test/\n",
    @text)->{body}, "0\tseen\thttp://www.two.test/\n"
    . "1\tseen\thttp://two.test/\n", '  with their ids');
ok($t->stop, 'stop');

# --- by command; also to another www=

sub rekey
{
    my ($made, $norm, $option) = @_;
    my $dir = copied("www-$made", "rekey-$made-" . ++$t->{rekey});

    spew("$dir/manifest", resealed(slurp("$dir/manifest")
        =~ s{^store norm crawler/1 unicode=15.0}{store norm $norm}mr));

    return ($dir, scalar `$urlstore rekey $option $dir 2>&1`, $? >> 8);
}

for (['first', '', 'crawler/1 unicode=15.0', 6],
    ['first', '--www=first', 'crawler/1', 6],
    ['first', '', 'crawler/0', 6], ['first', '--www=strip', 'crawler/1', 6],
    ['first', '--www=keep', 'crawler/1', 33], ['strip', '', 'crawler/0', 4])
{
    my ($made, $option, $norm, $n) = @$_;
    my ($dir, $said, $rc) = rekey($made, $norm, $option);
    my $www = $option =~ /=(.*)/ ? $1 : $made;

    is($rc, 0, "rekey $option: $norm of www=$made");
    like($said, qr/is "crawler\/1 www=$www" now; of $n URLs/, '  says so');
    is(`$urlstore dump $dir`, $www{$made}, '  all ids');

    for my $i (0, 4) {
        my ($url) = $www{$made} =~ /^$i\t(.*)/m;
        my $id = $www eq 'keep' ? $i : 0;

        is(`echo $url | $urlstore import --www=$www $dir 2>&1`,
            "urlstore: 1 lines: 0 new, 1 seen, 0 refused\n",
            '  a URL is known');
        like(`echo $url | $urlstore seen $dir`, qr/^$id\tseen/, '  and its id');
    }
}

for (['crawler/0', 1, qr/URLs would be others; nothing was changed/],
    ['netscape/1', 2, qr/does not have its normalization/])
{
    my ($norm, $code, $why) = @$_;
    my $add = 'printf "http://a.test/?b=%%7e#c\n"';
    my $dir = "$t->{dir}/rekey-$code";

    system("$add | $urlstore import --profile=whatwg $dir 2>/dev/null");
    spew("$dir/manifest", my $was = resealed(slurp("$dir/manifest")
        =~ s{^store norm whatwg/1}{store norm $norm}mr));

    like(`$urlstore rekey $dir 2>&1`, $why, "rekey is refused: $norm");
    is($? >> 8, $code, '  with its code');
    is(slurp("$dir/manifest"), $was, '  nothing was changed');
}

like(`$urlstore import --www=keep $t->{dir}/first </dev/null 2>&1`,
    qr/not with "crawler\/1 www=keep"; "urlstore rekey" changes/,
    'another www= is refused, and how it is changed is said');


# --- a snapshot of a version that is not read is left as it is

my ($snapshot) = glob "$t->{dir}/marks/snapshot.*";
my $old = slurp($snapshot);

substr($old, 8, 1) = "\1";
substr($old, 60, 4) = pack 'V', crc32c(0, substr $old, 0, 60);
spew($snapshot, $old);
like(`$urlstore verify $t->{dir}/marks 2>&1`,
    qr/format version 1, this program/,
    'a snapshot of version 1: verify');
is(slurp($snapshot), $old, '  touched nothing');
