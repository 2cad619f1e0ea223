#!/usr/bin/perl

# A zone that is full: new URLs are refused, each with its own answer, and all
# else goes on.  The URLs are those of a real crawl.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use UrlStore::Test;

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone small 1m marks=visited;
urlstore_zone tight 1m marks=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api small; }
    location /tight/ { urlstore_api tight; }
}
CONF

my @lines = @{corpus('eot2024_A', 60_000)};
my ($n, @stored, @refused) = (0);

# until a whole batch is refused

while (@lines && !(@refused && $refused[-1] >= $n - 2)) {
    my @batch = splice @lines, 0, 1000;
    my $r = $t->post('/add?brief=1', join '', map { "$_\n" } @batch);

    is($r->{status}, 200, 'a batch is answered 200, whatever its items');

    for my $i (0 .. $#batch) {
        my (undef, $status) = split /\t/, (split /\n/, $r->{body})[$i];
        push @stored, $batch[$i] if $status eq 'new';
        push @refused, $n if $status eq 'full';
        $n++;
    }
}

ok(@refused && @stored, 'the zone became full: ' . @stored . ' URLs');

my $url = 'http://full.test/' . join '', map { chr 97 + $_ * 7 % 26 } 0 .. 2000;

# a single one

my $r = $t->post('/add?url=' . uri_escape($url));

is($r->{status}, 507, 'a single add of a new URL: 507');
like($r->{headers}{'content-type'}, qr{^application/problem\+json},
    'a problem');
is(json($r->{body})->{status}, 507, 'with its code');
is($t->post('/add', JSON::PP::encode_json({ url => $url, ref => [7] }),
    'Content-Type' => 'application/json')->json->{ref}[0], 7, 'and the ref');
ok(!exists $r->{headers}{location}, 'and no Location');

# a batch, in each format

is($t->post('/add', "$stored[0]\n$url\nmailto:a\n")->{body} =~ s/\t\Q$url\E//r
       =~ s/\thttp\S+//r,
    "0\tseen\n-\tfull\n-\tinvalid\tscheme\n", 'text');

$r = json($t->post('/add', JSON::PP::encode_json([$stored[0], $url]),
    'Content-Type' => 'application/json')->{body});

is($r->{results}[0]{status}, 'seen', 'JSON: a known one is seen');
is($r->{results}[1]{status}, 'full', 'JSON: a new one is full');
is($r->{results}[1]{id}, undef, 'and has no id');
is($r->{errors}, 1, 'it counts among the errors');
is($r->{new} + $r->{unseen}, 0, 'and nowhere else');
is($r->{next_id}, scalar @stored, 'ids are dense');

$r = $t->post('/add?summary=1', JSON::PP::encode_json({ url => $url, ref => 7 })
    . "\n", 'Content-Type' => 'application/x-ndjson')->{body};

my ($item, $sum) = map { json($_) } split /\n/, $r;

is($item->{status}, 'full', 'NDJSON');
is($item->{ref}, 7, 'with its ref');
is($sum->{errors}, 1, 'and the summary');

is($t->post('/add?only=new', "$url\n")->{body}, '', 'only=new leaves it out');

# everything else goes on

is($t->get('/seen?url=' . uri_escape($stored[-1]))->{status}, 200, '/seen');
is(json($t->get('/seen?url=' . uri_escape($url))->{body})->{status}, 'unseen',
    'what was refused is unseen');

my $last = $#stored;

like($t->get("/url/$last")->{body}, qr/^https?:/, '/url');
like($t->get("/urls?from=$last&limit=5")->{body}, qr/^$last\t/, '/urls');
like($t->post('/mark/visited', "0\n")->{body}, qr/^0\tset/, '/mark');
is($t->post('/add?url=' . uri_escape($stored[0]))->{status}, 200,
    'adding what is there');

# and it is reported

is($t->get('/health')->{status}, 200, '/health for readers');

$r = $t->get('/health?write=1');

is($r->{status}, 503, '/health?write=1');
is(json($r->{body})->{full} ? 1 : 0, 1, 'full');
is(json($r->{body})->{writable} ? 1 : 0, 0, 'not writable');

like($t->get('/metrics')->{body}, qr/^urlstore_full\S* 1$/m, '/metrics');
is(json($t->get('/stats')->{body})->{full} ? 1 : 0, 1, '/stats');

# a delete does not make room, but goes on working

is($t->forget("/url/$last")->{status}, 204, 'DELETE');
is($t->get("/url/$last")->{status}, 410, 'and its id is gone');

# bits of marks and of deleted ids take room as well, which adds leave to them,
# but not for ever

@lines = @{corpus('eot2024_A', 60_000)};

while (@lines) {
    my $body = join '', map { "$_\n" } splice @lines, 0, 1000;

    last if $t->post('/tight/add?brief=1', $body)->{body} !~ /\tnew$/m;
}

# every other id has each mark, which is the most that they can take

my $even = join '', map { 2 * $_ . "\n" }
    0 .. json($t->get('/tight/stats')->{body})->{urls} / 2 - 1;
my %mark = map {
    my $mark = $_;
    $mark => join '', map { $t->post("/tight/mark/$mark?brief=1", $_)->{body} }
        $even =~ /((?:.+\n){1,5000})/g
} 'a' .. 'p';

like($mark{a}, qr/^0\tset/, 'a mark finds room in a full zone');
like($mark{p}, qr/^\S+\tfull/m, 'the last one does not');

$r = $t->forget('/tight/url/0');

is($r->{status}, 507, 'DELETE without room: 507');
like($r->json->{detail}, qr/full/, 'with the reason');
is($t->get('/tight/url/0')->{status}, 200, 'and the URL is still there');
