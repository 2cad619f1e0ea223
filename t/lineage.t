#!/usr/bin/perl

# What the founding systems did, on a real corpus, beside a model in Perl: new
# sites and counts by site, the longest known prefix, a crawler that is fed
# by marks and killed on its way, the sorted dump (docs/lineage.md).

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $t = UrlStore::Test->new(workers => 2)->run(<<'CONF');
client_max_body_size 16m;
urlstore_zone u 64m sites=on marks=visited path=%%DIR%%/data sync=50ms;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; urlstore_max_batch 10000; }
}
CONF


sub site
{
    my ($url) = @_;

    return $url =~ m{^https?://(?:www\.(?=[^./]+\.))?([^/?]+)} ? $1 : '';
}


# --- duplicates and new sites: the control node's table

my @lines = grep { m{^https?://[\w.-]+(?::\d+)?(?:[/?]|$)}a }
    @{ corpus('html_news_blogs_pages', 30_000) };
my (@urls, %site, @first, %id);
my ($wrong, $seen) = (0, 0);

ok($t->ready, 'ready');

while (my @part = splice @lines, 0, 5_000) {
    my $answer = $t->post('/add?sites=1', join('', map { "$_\n" } @part));

    for (split /\n/, $answer->{body}) {
        my ($id, $status, $url, $answer) = split /\t/;

        if ($status eq 'seen') {
            $seen++;
            $wrong++ if $id{$url} != $id || $answer ne 'site-known';
            next;
        }

        next if $status ne 'new';

        my $site = site($url);
        $wrong++ if $id != @urls
            || $answer ne ($site{$site} ? 'site-known' : 'site-new');

        push @first, $id if !$site{$site};
        push @{ $site{$site} }, $id;
        push @urls, $url;
        $id{$url} = $id;
    }
}

cmp_ok(scalar(@urls), '>', 10_000, 'enough URLs');
cmp_ok(scalar(@first), '>', 1_000, 'of enough sites');
cmp_ok($seen, '>', 5_000, 'and enough that were seen');
is($wrong, 0, '/add?sites=1 distinguishes new sites from known ones');

my ($from, $table) = (0, '');

while (1) {
    my $part = $t->get("/urls?new_sites=1&from=$from&limit=1000")->{body};
    last if $part eq '';
    $table .= $part;
    ($from) = $part =~ /(\d+)\t.*\n\z/;
    $from++;
}

ok($table eq join('', map { "$_\t$urls[$_]\n" } @first),
    '/urls?new_sites=1: the first URL of every site, in order of first sight');


# --- by site

my @large = (sort { @{ $site{$b} } <=> @{ $site{$a} } || $a cmp $b }
    keys %site)[0 .. 49];
my @bad;

for my $site (@large, map { site($urls[$_]) } @first[0 .. 49]) {
    my $answer = $t->get("/site/$site")->json;
    my @ids = @{ $site{$site} };
    my ($spelling) = $urls[$ids[0]] =~ m{//([^/?]+)};

    push @bad, $site if $answer->{urls} != @ids || $answer->{first} != $ids[0]
        || $answer->{last} != $ids[-1] || $answer->{spelling} ne $spelling;

    my $list = $t->get("/urls?site=$site&limit=100000")->{body};
    push @bad, "list $site"
        if $list ne join '', map { "$_\t$urls[$_]\n" } @ids;
}

is_deeply(\@bad, [], '/site/HOST and /urls?site=HOST of 100 sites');


# --- the longest known prefix

my %dir;

for my $url (grep { m{^https?://[^/]+(/[\w.-]+)*/?$}a } @urls) {
    $dir{$url} = 1 if keys %dir < 400;
}

@bad = ();
my %depth;

for my $url (sort keys %dir) {
    for my $more ('', '/deeper/page.html', '?q=1', '/../none/', 'x') {
        my $ask = $url . $more;
        my $u = $t->get('/normalize?url=' . uri_escape($ask))->json->{url};
        my $expected;

        for (my $n = length $u; $n > 8; $n--) {
            my $cut = substr $u, 0, $n;
            next if $n < length $u && $cut !~ m{/$}
                && substr($u, $n, 1) !~ m{[/?]};
            $expected = $id{$cut} // next;
            last;
        }

        my $answer = $t->get('/prefix?url=' . uri_escape($ask))->json;
        push @bad, "$ask: " . ($answer->{id} // 'none')
            if ($answer->{id} // -1) != ($expected // -1);
        $depth{defined $expected ? $urls[$expected] eq $u ? 'itself' : 'above'
            : 'none'}++;
    }
}

is_deeply([ splice @bad, 0, 5 ], [],
    '/prefix of 2,000 URLs, as the model has it');
cmp_ok($depth{$_} // 0, '>', 50, "$_: often enough") for qw(itself above none);


# --- a crawler: takes what is not visited, visits, marks; killed on its way

my (%visits, $rounds);
($from, $rounds) = (0, 0);

while (1) {
    my $feed = $t->client->request('GET',
        "/urls?mark=!visited&from=$from&limit=2500");
    my @feed = map { (split /\t/)[0] } split /\n/, $feed->{body};
    last if !@feed;

    $rounds++;
    $visits{$_}++ for @feed;
    my $half = @feed / 2;
    my @mark = ((map { "$_\n" } @feed[0 .. $half - 1]),
        map { "$urls[$_]\n" } @feed[$half .. $#feed]);

    my $marked = $t->client->request('POST', '/mark/visited?brief=1',
        join '', @mark);
    my $set = () = $marked->{body} =~ /\tset\n/g;
    is($set, scalar(@feed), "round $rounds: marked by id and by URL")
        if $set != @feed || $rounds == 1;

    # again, for nothing is lost by doing it twice
    $t->client->request('POST', '/mark/visited?brief=1', $mark[0]);

    if ($rounds == 3) {
        $t->kill_all;
        delete $t->{client};
        $t->start;
        ok($t->ready, 'killed, and started');
        $from = 0;

    } else {
        $from = $feed[-1] + 1;
    }
}

is(scalar(keys %visits), scalar(@urls), 'every URL was visited');
is(scalar(grep { $_ != 1 } values %visits), 0, 'and none twice');
is($t->get('/urls?mark=!visited')->{body}, '', 'nothing is left');


# --- sorted and delta-coded

ok($t->stop, 'stop');

my $data = $t->dir . '/data';
my @sorted = sort @urls;
my $out = `build/urlstore dump --sorted $data 2>$data.err`;
ok($out eq join('', map { "$_\n" } @sorted), 'dump --sorted');
like(slurp("$data.err"), qr/${\ scalar @urls} URLs, [\d.]+ bytes each, [\d.]+ /,
    'it prints the bytes per URL');

$out = `build/urlstore dump --sorted --memory 1m $data 2>/dev/null`;
ok($out eq join('', map { "$_\n" } @sorted), 'by temporary files');

$out = `TMPDIR=$data/none build/urlstore dump --sorted --memory 1m $data`;
ok($out eq join('', map { "$_\n" } @sorted), 'also without the $TMPDIR');

# a sort that is none

for (['exit 3', 'sort failed with exit code 3'],
    ['cat >/dev/null; kill -9 $$', 'sort failed with signal 9'],
    ['cat >/dev/null; echo a', 'sort printed 1 of ' . @urls . ' URLs'],
    ['cat >/dev/null; echo a; tr "\0" x </dev/zero | head -c 300000',
        'sort printed 1 of ' . @urls . ' URLs'],
    [undef, 'sort failed with exit code 127'])
{
    my ($does, $why) = @$_;
    my $bin = $t->dir . '/bin';

    mkdir $bin;
    unlink "$bin/sort";

    if (defined $does) {
        open my $sort, '>', "$bin/sort" or die "$bin/sort: $!";
        print $sort "#!/bin/sh\nPATH=/bin:/usr/bin\n$does\n";
        close $sort;
        chmod 0755, "$bin/sort";
    }

    my $said = `PATH=$bin build/urlstore dump --sorted $data \\
        2>&1 >/dev/null`;
    is($? >> 8, 2, "$why: exit code");
    is((split /\n/, $said)[-1], "urlstore: $why", '  and why');
}

$out = `build/urlstore dump --sorted --delta $data 2>$data.err`;
my ($answer) = slurp("$data.err") =~ /, ([\d.]+) sorted/;
cmp_ok(abs(length($out) / @urls - $answer), '<', 0.01, "$answer bytes a URL");

my ($last, @decoded) = ('');

for (my $pos = 0; $pos < length $out; ) {
    my $common = ord substr $out, $pos, 1;
    my $end = index $out, "\n", $pos + 1;
    $last = substr($last, 0, $common)
        . substr($out, $pos + 1, $end - $pos - 1);
    push @decoded, $last;
    $pos = $end + 1;
}

is_deeply(\@decoded, \@sorted, 'dump --sorted --delta, decoded');
