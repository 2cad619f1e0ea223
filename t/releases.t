#!/usr/bin/perl

# Directories as releases wrote them (t/data/directories/RELEASE): each later
# version of the same number before the dot reads all that is in them.
#
#     perl t/releases.t make RELEASE      writes the one of this version
#
# 300 URLs, with sites and claims, a set, deletes, erasures and the key of a
# request.  250 of them are in a snapshot, 50 in the journal, as nginx was
# killed.  RELEASE.txt is what "urlstore dump --deleted --times" made of it.

use strict;
use warnings;

use lib 't/lib';
use File::Copy qw(copy);
use UrlStore::Test;

my $urlstore = "$UrlStore::Test::TOP/build/urlstore";
my $from = 't/data/directories';
my @text = ('Content-Type' => 'text/plain', Accept => 'text/plain');
my $t;


sub url
{
    my ($i) = @_;

    return sprintf 'https://s%d.test/%s/%d', $i * $i % 13,
        join('-', map { $i * $_ % 251 } 1 .. 6), $i;
}


sub deleted { return $_[0] % 11 == 3 }

sub erased { return $_[0] % 50 == 7 && $_[0] < 250 }

sub member { return $_[0] % 5 == 0 }


sub urls { return join '', map { url($_) . "\n" } @_ }


# a server, over a copy of the directory, if there is one yet

sub server
{
    my ($release) = @_;

    $t = UrlStore::Test->new(workers => 2, judge => defined $release);

    if (defined $release) {
        mkdir "$t->{dir}/u";
        copy($_, "$t->{dir}/u") or die "copy: $!" for glob "$from/$release/*";

        if ($> == 0) {
            chown((getpwnam('nobody'))[2, 3], $_)
                for "$t->{dir}/u", glob "$t->{dir}/u/*";
        }
    }

    return $t;
}


use constant CONF => <<'CONF';
urlstore_zone u 8m path=%%DIR%%/u sync=always sets=4 revisit=1h sites=on
              erase_within=2s;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF


sub make
{
    my ($release) = @_;

    server()->run(CONF);
    $t->ready(write => 1);
    $t->request(PUT => '/set/crawl');

    my $add = sub {
        $t->post('/add', urls(@_), @text, 'Idempotency-Key' => '"a"');
        $t->post('/set/crawl', urls(grep { member($_) } @_), @text);
    };

    $add->(0 .. 249);
    $t->forget("/url/$_") for grep { deleted($_) } 0 .. 249;
    $t->post('/erase', urls(grep { erased($_) } 0 .. 249), @text);
    wait_until(60, sub { !@{ $t->get('/erase/1')->json->{left} } })
        or die 'not erased';

    $add->(250 .. 299);
    $t->forget("/url/$_") for grep { deleted($_) } 250 .. 299;
    $t->kill_all;

    mkdir "$from/$release" or die "$from/$release: $!";
    copy($_, "$from/$release") or die "copy: $!"
        for grep { -s } glob "$t->{dir}/u/*";
    spew("$from/$release.txt",
        scalar `$urlstore dump --deleted --times $t->{dir}/u`);
}


if (@ARGV) {
    $ARGV[0] eq 'make' && @ARGV == 2 or die "make RELEASE?\n";
    make($ARGV[1]);
    exit 0;
}

my @releases = map { m{(\d+\.\d+)\.txt$} } glob "$from/*.txt";
my @gone = grep { erased($_) } 0 .. 299;
my @there = grep { !deleted($_) && !erased($_) } 0 .. 299;

my ($version) = slurp('src/us_version.h') =~ /US_VERSION\s+"([\d.]+)"/;

is($releases[-1], $version =~ s/\.\d+$//r, "the last release is $version");

for (['CHANGELOG.md', qr/^## \Q$version\E,/m],
    ['front/openapi.yaml', qr/^  version: "\Q$version\E"$/m],
    ['debian/changelog', qr/^urlstore \(\Q$version\E[-)]/],
    ['deploy/kubernetes.yaml', qr/image: urlstore:\Q$version\E$/m])
{
    like(slurp($_->[0]), $_->[1], "  of $_->[0]");
}

for my $release (@releases) {
    my $lines = slurp("$from/$release.txt");

    server($release);
    like(`$urlstore verify $t->{dir}/u`,
        qr/300 ids read back, @{[300 - @there]} deleted, 0/,
        "$release: verify");
    is(`$urlstore dump --deleted --times $t->{dir}/u`, $lines, '  dump');

    $t->run(CONF);

    for my $round ('', ', after a restart') {
        ok($t->ready(write => 1), "$release$round");
        is($t->post('/url?times=1', join("\n", 0 .. 299), @text)->{body},
            $lines =~ s/\t-\t.*$/\t-\tdeleted/mgr, '  each id, and its time');
        is($t->post('/seen', urls(@there), @text)->{body}, join('',
            map { "$_\tseen\t" . url($_) . "\n" } @there), '  each URL');
        is($t->get('/urls?set=crawl&limit=1000', Accept => 'text/plain')
            ->{body}, join('', map { "$_\t" . url($_) . "\n" }
            grep { member($_) } @there), '  the set');
        is($t->post('/add', urls(@gone), @text)->{body},
            "-\trefused\terased\n" x @gone, '  erased URLs are refused');
        ok(wait_until(60, sub { !@{ $t->get('/erase/1')->json->{left} } }),
            '  and gone');
        is($t->get('/site/s1.test')->json->{first}, 1, '  a site');
        ok($t->stop && $t->start, '  a restart') if !$round;
    }

    is($t->forget('/erase/1')->{status}, 204, '  lifted');
    like($t->post('/add', urls($gone[0]), @text)->{body}, qr/^300\tnew\t/,
        '  the next id');
    ok($t->stop, '  stop');
}
