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


# URL i, and what became of it; a site has the spelling of its first URL

my %www;

$www{$_ * $_ % 13} //= $_ % 3 ? '' : 'www.' for 0 .. 299;

sub url
{
    my ($i) = @_;
    my $site = $i * $i % 13;

    return sprintf 'http%s://%ss%d.test/%s/%d', $i % 2 ? 's' : '',
        $www{$site}, $site, join('-', map { $i * $_ % 251 } 1 .. 12), $i;
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


for my $dir (@dirs) {
    my $to = "$t->{dir}/$dir";

    mkdir $to;
    copy($_, $to) or die "copy: $!" for glob "t/data/directories/$dir/*";
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


# --- the server

if ($> == 0) {
    my ($uid, $gid) = (getpwnam('nobody'))[2, 3];
    chown $uid, $gid, map { ($_, glob("$_/*")) } map { "$t->{dir}/$_" } @dirs;
}

$t->run(<<'CONF');
urlstore_cluster c %%DIR%%/map.json;
urlstore_zone marks 8m path=%%DIR%%/marks sync=always marks=visited,hot;
urlstore_zone claims 8m path=%%DIR%%/claims sync=always revisit=1h sites=on;
urlstore_zone shard 8m path=%%DIR%%/shard sync=always revisit=1h
              cluster=c shard=1 node=n1;
urlstore_zone except 8m path=%%DIR%%/except;
urlstore_www_except except two.test;
server {
    listen 127.0.0.1:%%PORT%%;
    location /except/ { urlstore_api except; }
    location /marks/  { urlstore_api marks; }
    location /claims/ { urlstore_api claims; }
    location /shard/  { urlstore_api shard; }
}
CONF

for my $round ('from these files', 'after a restart') {

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

    last if $round =~ /restart/;

    ok($t->stop && $t->start, 'stop and start');
}

for my $dir (@dirs) {
    is($t->post("/$dir/add", "http://new.test/\n", @text)->{body},
        $first{$dir} + 300 . "\tnew\thttp://new.test/\n", "$dir: the next id");
}

# of two sites, because this zone says so

$t->post('/except/add', "http://www.two.test/\nhttp://two.test/\n", @text);

ok($t->stop, 'stop');


# --- their keys are those of this version

for my $dir (@dirs) {
    like($t->error_log, qr/"$dir".*keys made by "crawler\/1 unicode=15.0 www=/,
        "$dir: looked at again");
    like(slurp("$t->{dir}/$dir/manifest"),
        qr/^store norm crawler\/1 www=first$/m, '  its signature is new');
}

my $manifest = "$t->{dir}/except/manifest";

spew($manifest, resealed(slurp($manifest)
    =~ s{^store norm crawler/1}{store norm crawler/1 unicode=15.0}mr));
ok($t->start && $t->ready(below => '/except'), 'exceptions of www. are kept');
is($t->post('/except/seen', "http://www.two.test/\nhttp://two.test/\n",
    @text)->{body}, "0\tseen\thttp://www.two.test/\n"
    . "1\tseen\thttp://two.test/\n", '  with their ids');
ok($t->stop, 'stop');

# hosts that had no www. in common by the list of another day

for (['first', 'first', 0], ['keep', 'keep', 0], ['keep', 'first', 2]) {
    my ($made, $now, $rc) = @$_;
    my $dir = "$t->{dir}/$made-$now";
    my $add = "printf 'http://www.%s.test/\\n' a b a xn--bcher-kva"
        . " | $urlstore import";

    system("$add --www=$made $dir 2>/dev/null");
    spew("$dir/manifest", resealed(slurp("$dir/manifest")
        =~ s{^store norm .*}{store norm crawler/1 unicode=15.0 www=$now}mr));

    my $said = `$add --www=$now $dir 2>&1`;

    is($? >> 8, $rc, "$made, then $now");
    like($said, $rc ? qr/and 3 of its URLs, the first of which is 0, have other/
        : qr/4 lines: 0 new, 4 seen/, '  and says so');
}


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
