#!/usr/bin/perl

# Sets over a router and three shards: each shard has its part.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use UrlStore::Cluster;
use UrlStore::Corpora;
use UrlStore::Test;

my $c = UrlStore::Cluster->new(shards => 3, key => 'url',
    zone => 'marks=visited sets=3')->run;
my $t = $c->t;
my @text = ('Content-Type' => 'text/plain');
my ($r, $s);

sub set { return $t->request(@_) }

is(set(GET => '/set/a')->{status}, 404, 'none');
is(set(PUT => '/set/a')->{status}, 201, 'made in all shards');
is(set(PUT => '/set/a')->{status}, 200, '  once');
is(set(PUT => '/set/b')->{status}, 201, 'another one');

my %urls = map { $_ => 1 } @{ corpus('reddit_submissions', 300) };
my @urls = sort keys %urls;
my $body = join '', map { "$_\n" } @urls;

sub answers
{
    my ($text, $column) = @_;
    my %n;

    $n{(split /\t/)[$column]}++ for split /\n/, $text;

    return join ' ', map { "$_=$n{$_}" } sort keys %n;
}

my $first = $t->post('/add', $body, @text)->{body};
my %ids = map { (split /\t/)[0] => 1 } grep { /^\d/ } split /\n/, $first;
my $n = keys %ids;

my $a = $t->post('/add?set=a&stored=1', $body, @text)->{body};
my %new = map { /^(\d+)\tnew\t/ ? ($1 => 1) : () } split /\n/, $a;

is_deeply(\%new, \%ids, 'all are new to the set');
unlike($a, qr/\tnew\n/, '  and none to the store');
is(answers($t->post('/add?set=a', $body, @text)->{body}, 1) =~ /\bnew=/
    ? 'new' : 'none', 'none', '  once');
$s = set(GET => '/set/a')->json;
is($s->{members}, $n, 'members of all shards');
is($s->{asked}, 2 * @urls - 2 * grep({ /^-/ } split /\n/, $first),
    '  and for how many URLs');
is_deeply([map { $_->{name} } @{ set(GET => '/set')->json->{sets} }],
    [qw(a b visited)], 'all sets');
like(set(GET => '/set', undef, Accept => 'text/plain')->{body},
    qr/\Aa\t$n\t\d+\t\d+\t\d+\nb\t0\t/, '  as text');

my %list = map { /^(\d+)/ ? ($1 => 1) : () } split /\n/,
    $t->get('/urls?set=a&limit=1000')->{body};
is_deeply(\%list, \%ids, 'its URLs');
unlike($t->get('/urls?set=!a&limit=1000')->{body}, qr/^\d/, '  no others');

my ($one) = sort keys %ids;

is($t->post('/set/b', "$one\n$one\n", @text)->{body} =~ s/\t[^\t\n]*$//mgr,
    "$one\tin\n$one\twas\n", 'an id is put in, once');
is(set(DELETE => "/set/b/$one")->json->{status}, 'out', '  taken out');
is(set(DELETE => "/set/b/$one")->json->{status}, 'unseen', '  once');
is($t->post('/set/b', "$urls[0]\nhttp://never.test/\n", @text)->{body}
    =~ s/^\d+\t//r, "in\t" . (split /\t/, (split /\n/, $first)[0])[2]
    . "\n-\tunknown\thttp://never.test/\n", '  by its URL');
is($t->post('/seen?set=b&stored=1', "$urls[1]\n", @text)->{body}
    =~ s/\t.*\t/\t/r, (split /\t/, (split /\n/, $first)[1])[0]
    . "\tseen\n", 'not in the set, but stored') or diag($t->post(
    '/seen?set=b&stored=1', "$urls[1]\n", @text)->{body});

my @key = ('Idempotency-Key' => '"k"');

for (1, 2) {
    $r = $t->post('/add?set=b', "$urls[2]\n$urls[2]\n", @text, @key);
    is(answers($r->{body}, 1), 'new=1 seen=1', 'a key');
}

is($t->post('/add?set=none', $body, @text)->{status}, 404, 'no such set');
is(set(PUT => '/set/a%2Fb')->{status}, 400, 'no name');
is(set(PUT => '/set/c')->{status}, 201, 'as many as there may be');
is(set(PUT => '/set/d')->{status}, 409, '  no more');
is(set(DELETE => '/set/visited')->{status}, 409, 'a mark');
is(set(DELETE => '/set/c')->{status}, 204, 'dropped');
is(set(DELETE => '/set/c')->{status}, 404, '  once');


# --- a shard that does not answer

$c->down(1);

$r = set(PUT => '/set/e');
is($r->{status}, 504, 'PUT without a shard');
is_deeply($r->json->{unavailable}, [1], '  which one');
is_deeply(set(GET => '/set/a')->json->{unavailable}, [1], 'GET says it, too');
is_deeply(set(GET => '/set')->json->{unavailable}, [1], '  of all');
is(set(GET => '/set/never')->{status}, 503, '  it may have a part');
like(set(GET => '/set', undef, Accept => 'text/plain')->{body},
    qr/^# unavailable=1$/m, '  as text');
like($t->post('/add?set=a', $body, @text)->{body},
    qr/\tseen\t.*\tunavailable\t/s,
    'an add has the others');

done_testing;
