#!/usr/bin/perl

# Filter zones: /add and /seen without ids, the stated error on a corpus, what
# is refused; reload, kill -9 of everything (a hundred times with US_FULL),
# power failure; and the two hashes as variables.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $t = UrlStore::Test->new(workers => 2, daemon => 0);

my $text = <<'CONF';
urlstore_filter f 328k capacity=100k error=0.01;
urlstore_filter tiny 1m capacity=20 error=0.01;
urlstore_filter disk 1m capacity=200k error=0.01 path=%%DIR%%/filter;
urlstore_reject f ^https?://refused\.test/;
client_max_body_size 16m;
server {
    listen 127.0.0.1:%%PORT%%;
    location /f/ { urlstore_api f; }
    location /tiny/ { urlstore_api tiny; }
    location /disk/ { urlstore_api disk; urlstore_max_batch 100000; }
    location /seen { urlstore_seen f; }
    location /hash {
        urlstore_seen f;
        add_header X-Hash "$urlstore_site_hash $urlstore_path_hash";
        add_header X-Status "$urlstore_status";
    }
}
CONF

$t->run($text);


# answers

is($t->post('/f/add', "http://www.a.test/\nhttp://b.test/x\n"
    . "https://A.test:443/\nhttp://a.test/#x\nftp://c.test/\n"
    . "http://refused.test/\n")->{body}, <<"END", 'added');
-\tnew\thttp://www.a.test/
-\tnew\thttp://b.test/x
-\tnew\thttps://a.test/
-\tseen\thttp://a.test/
-\tinvalid\tscheme
-\trejected\trule:1
END

is($t->post('/f/seen', "http://a.test/\nhttp://new.test/\n")->{body},
    "-\tseen\thttp://a.test/\n-\tunseen\thttp://new.test/\n", 'seen');
is($t->get('/seen?url=http://new.test/')->json->{status}, 'unseen',
    '/seen has added nothing');

my $a = $t->post('/f/add?url=http://one.test/');
is($a->{status}, 201, 'a single one is 201');
is($a->{headers}{location}, undef, 'and has no place of its own');
is($a->json->{id}, undef, 'nor an id');
is($a->json->{status}, 'new', 'but is new');
is($t->post('/f/add?url=http://one.test/')->{status}, 200, 'then seen');

$a = $t->post('/f/add', '["http://one.test/", "http://two.test/"]',
    'Content-Type' => 'application/json')->json;
is("$a->{new} $a->{seen} $a->{errors} $a->{next_id}", '1 1 0 0',
    'JSON batch');

for my $path (qw(url/0 urls prefix?url=http://a.test/ site/a.test)) {
    $a = $t->get("/f/$path");
    is($a->{status}, 404, "no /$path");
    like($a->{body}, qr/neither ids nor URLs/, 'and why');
}

is($t->post('/f/add?sites=1', "http://a.test/\n")->{status}, 400, 'no sites');
is($t->get('/f/normalize?url=http://A.test/./b')->json->{url},
    'http://a.test/b', '/normalize');

my $stats = $t->get('/f/stats')->json;
is("$stats->{urls} $stats->{capacity} $stats->{error}", '5 100000 0.01',
    '/stats');
cmp_ok($stats->{expected_error}, '<', 1e-6, 'no error yet');
like($t->get('/f/metrics')->{body},
    qr/^urlstore_filter_urls\{zone="f"\} 5\n/m, '/metrics');
is($t->get('/f/health?write=1')->json->{status}, 'ready', '/health');


# variables: the hashes are those of the command

my ($hash) = `build/urlstore hash http://www.a.test/x?y=1` =~ /^(.*)\thttp/;
$hash =~ s/\t/ /;

$a = $t->get('/hash?url=http://www.A.test/x%3Fy=1');
is($a->{headers}{'x-hash'}, $hash, 'hash variables');
is($a->{headers}{'x-status'}, 'unseen', '$urlstore_status of a filter');
is($t->get('/hash?url=http://a.test/')->{headers}{'x-status'}, 'seen',
    'and seen');
is($t->get('/hash?url=x')->{headers}{'x-hash'} // '', '', 'no URL, no hash');


# full

my @tiny = map { "http://tiny.test/$_\n" } 1 .. 60;
$t->post('/tiny/add', join('', @tiny[0 .. 18]));
like($t->error_log, qr/\[warn\].*"tiny" is nearly full: 19 of 20/,
    'warns before it is full');
$t->allow(qr/"tiny" is full/);

# a group goes in whole
$t->post('/tiny/add', join('', @tiny[19 .. 24]));
is($t->post('/tiny/add', "$tiny[0]$tiny[50]")->{body},
    "-\tseen\thttp://tiny.test/1\n-\tfull\thttp://tiny.test/51\n",
    'a full one knows what it has, and says full to the rest');
is($t->post('/tiny/add?url=http://x.test/')->{status}, 507, 'single: 507');
is($t->post('/tiny/seen', $tiny[50])->{body},
    "-\tunseen\thttp://tiny.test/51\n", 'nothing was added');
is($t->get('/tiny/health?write=1')->{status}, 503, '/health reports it');


# the error on real URLs

my %distinct;
my @urls = grep { !$distinct{$_}++ } map { s/\s+$//r }
    grep { /^[\x21-\x7e]+\s*$/ } @{ corpus('tweetfeed_iocs', 60_000) },
    @{ generated(150_000) };
@urls = @urls[0 .. 199_999] if @urls > 200_000;


# (zone, action, URLs): the statuses

sub batch
{
    my ($zone, $action, @u) = @_;
    my @status;

    while (my @part = splice @u, 0, 10_000) {
        my $answer = $t->post("/$zone/$action?brief=1",
            join('', map { "$_\n" } @part));
        return if $answer->{status} != 200;
        push @status, map { (split /\t/)[1] } split /\n/, $answer->{body};
    }

    return @status;
}


cmp_ok(scalar(@urls), '>=', 190_000, 'enough URLs');

my $half = 90_000;
my @s = batch('f', 'add', @urls[0 .. $half - 1]);
is(scalar(@s), $half, 'each has an answer');

@s = batch('f', 'seen', @urls[0 .. $half - 1]);
is(scalar(grep { $_ eq 'unseen' } @s), 0, 'no false negative');

@s = batch('f', 'seen', @urls[$half .. 2 * $half - 1]);
my $wrong = grep { $_ eq 'seen' } @s;
my $right = grep { $_ eq 'unseen' } @s;
my $rate = $wrong / ($wrong + $right);
cmp_ok($rate, '<', 0.013, "error $rate within 1.3 of what is stated");

$stats = $t->get('/f/stats')->json;
cmp_ok(abs($stats->{expected_error} / $rate - 1), '<', 0.5,
    "and about what /stats expects: $stats->{expected_error}");


# reload

@s = batch('disk', 'add', @urls[0 .. 9_999]);
ok($t->reload, 'reload');

for my $zone (qw(f disk)) {
    @s = batch($zone, 'seen', @urls[0 .. 9_999]);
    is(scalar(grep { $_ ne 'seen' } @s), 0, "$zone: nothing forgotten");
}

for my $bad ([ 's/328k/3m/', 'urlstore_filter "f": its size cannot change' ],
    [ 's/capacity=100k/capacity=90k/', 'cannot change while' ],
    [ 's/200k error=0.01 path/100k error=0.01 path/', 'cannot change' ],
    [ 's/_filter tiny 1m capacity=20 error=0.01/_zone tiny 1m/',
        'cannot change' ],
    [ 's/disk (1m.*);/other $1 profile=aggressive;/; s/api disk/api other/',
        'its URLs were normalized as "crawler' ])
{
    local $_ = $text;
    eval $bad->[0];
    $t->allow(qr/cannot change/, qr/were normalized as/);
    ok(!$t->reload($_), "reload refused: $bad->[0]");
    like($t->error_log, qr/$bad->[1]/, 'and why');
}

$t->conf($text);

for my $bad ([ 'urlstore_filter x 1m capacity=10m error=0.01;',
        'too small: 1048576 bytes, at least \d+ are needed' ],
    [ 'urlstore_filter x 1m capacity=10;', 'needs "capacity" and "error"' ],
    [ 'urlstore_filter x 1m capacity=0 error=0.1;', 'invalid value "0"' ],
    [ 'urlstore_filter x 1m capacity=1 error=2;', 'invalid value "2"' ],
    [ 'urlstore_filter x 1m capacity=1 error=0.1 marks=a;',
        'invalid parameter' ])
{
    my ($rc, $out) = $t->check("$bad->[0]\n");
    is($rc, 1, "refused: $bad->[0]");
    like($out, qr/\[emerg\].*$bad->[1]/, 'and why');
}

# the example of docs/dedup.md: a crawler's share by its hash

my ($share) = slurp('docs/dedup.md') =~ /^    (split_clients .*)$/m;
my ($rc, $out) = $t->check("urlstore_filter x 1m capacity=10 error=0.1;\n"
    . "$share\nserver { listen 127.0.0.1:%%PORT%%; location / {\n"
    . "urlstore_seen x; add_header X-Node \$node; } }\n");
is($rc, 0, 'split_clients by a hash') or diag($out);

($rc, $out) = $t->check;
is($rc, 0, 'nginx -t beside a running nginx') or diag($out);

$t->allow(qr/cannot be resized/, qr/were normalized as/, qr/cannot make/);

for my $bad ([ 'capacity=\d+', 'capacity=777',
        'it was made for \d+ bytes, capacity=\d+ error=\S+; a filter cannot be '
        . 'resized' ],
    [ 'path=', 'profile=whatwg path=', 'its URLs were normalized as "crawler' ],
    [ 'path=\S+/filter', 'path=%%DIR%%/none/filter',
        'cannot make "\S+/none/filter" \(2: No such file' ])
{
    my ($from, $to, $words) = @$bad;
    my $other = join '', map { /^urlstore_filter disk/ ? s/$from/$to/r : $_ }
        $text =~ /(.*\n)/g;

    isnt($other, $text, "changed: $from");
    ($rc, $out) = $t->check($other);
    is($rc, 1, 'nginx -t refuses what a start would refuse');
    like($out, qr/\[emerg\].*urlstore_filter "disk".*$words/, 'and says why');
}

like($t->error_log, qr/\[notice\].*urlstore_filter "disk" path=\S+: created /,
    'a file that is created');

# stop and start: memory forgets, a file does not

ok($t->stop, 'stop');
ok($t->start, 'start');
@s = batch('disk', 'seen', @urls[0 .. 9_999]);
is(scalar(grep { $_ ne 'seen' } @s), 0, 'the file has everything');
like($t->error_log, qr/urlstore_filter "disk" \S+ opened with [1-9]\d* URLs/,
    'a line says what was opened');
@s = batch('f', 'seen', @urls[0 .. 99]);
is(scalar(grep { $_ ne 'unseen' } @s), 0, 'memory has nothing');


# kills: all processes each time, while adds are under way

my $kills = full() ? 100 : 8;
my $answered = 10_000;
my $lost = 0;

for my $round (1 .. $kills) {
    my $c = $t->client;

    for (1 .. 1 + $round % 3) {
        my @part = map { "$_\n" } @urls[$answered .. $answered + 299];
        my $answer = $c->request('POST', '/disk/add?brief=1', join '', @part);
        $answered += 300 if $answer && $answer->{status} == 200;
    }

    # one more that is not waited for

    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $t->port, Proto => 'tcp');
    my $body = join '', map { "$_\n" } @urls[$answered .. $answered + 299];
    print $s "POST /disk/add HTTP/1.1\r\nHost: x\r\nContent-Length: "
        . length($body) . "\r\n\r\n$body";

    $t->kill_all;
    delete $t->{client};

    if (!$t->start) {
        fail("start after kill $round");
        last;
    }

    @s = batch('disk', 'seen', @urls[$answered - 900 .. $answered - 1]);
    $lost += grep { $_ ne 'seen' } @s;
}

is($lost, 0, "$kills kills lost nothing that was answered");
@s = batch('disk', 'seen', @urls[0 .. $answered - 1]);
is(scalar(grep { $_ ne 'seen' } @s), 0, "none of all $answered");


# a power failure: not closed, and another boot

sub crash
{
    my ($clean) = @_;

    open my $f, '+<:raw', $t->dir . '/filter/filter' or die $!;
    seek $f, 56, 0;
    print $f pack('Q', $clean) . "another boot id.";
    close $f or die $!;
}

ok($t->stop, 'stop');
crash(1);
ok($t->start, 'closed: another boot does not matter');
ok($t->stop, 'stop');

crash(0);
$t->allow(qr/bits may be missing/);
($rc, $out) = $t->check;
is($rc, 1, 'not closed: nginx -t refuses what a start would refuse');
like($out, qr/bits may be missing/, 'and says why');
ok(!eval { $t->start }, 'not closed: refused');
like($t->error_log, qr/\[emerg\].*urlstore_filter "disk".*bits may be missing/,
    'and reported');
like($t->error_log, qr/bits may be missing.*\(unclean=accept\)/,
    'with the way out');

$text =~ s/path=/unclean=accept path=/;
$t->conf($text);
ok($t->start, 'unclean=accept');
like($t->error_log, qr/\[warn\].*some URLs that were seen will be new/,
    'and warned');


# www. of a host counts otherwise than before: "www." is new once more

my $www = UrlStore::Test->new;
my $of = sub { <<"CONF" };
urlstore_filter w 1m capacity=20k error=0.0001 path=%%DIR%%/filter;
urlstore_www_except w $_[0];
server { listen 127.0.0.1:%%PORT%%; location / { urlstore_api w; } }
CONF

$www->run($of->('two.test'));
$www->post('/add', join('', map { "http://www.$_.test/a\nhttp://$_.test/b\n" }
    qw(one two)));
ok($www->stop, 'another list of exceptions');
$www->conf($of->('one.test'));
ok($www->start, '  does not stop a filter');
is($www->post('/seen', join('', map { "http://$_.test/a\nhttp://$_.test/b\n" }
    qw(two www.two one www.one)))->{body},
    join('', map { "-\t$_->[0]\thttp://$_->[1]\n" } ['unseen', 'two.test/a'],
        ['seen', 'two.test/b'], ['unseen', 'www.two.test/a'],
        ['seen', 'www.two.test/b'], ['seen', 'one.test/a'],
        ['seen', 'one.test/b'], ['unseen', 'www.one.test/a'],
        ['unseen', 'www.one.test/b']),
    '  two sites that are one, and one that is two');
