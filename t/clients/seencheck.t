#!/usr/bin/perl

# The seencheck protocol: the requests are those that Zeno's client sends, the
# answers those that it understands.

use strict;
use warnings;

use lib 't/lib';
use IO::Compress::Gzip qw(gzip);
use UrlStore::Client;
use UrlStore::Fake;
use UrlStore::Test;

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 16m;
urlstore_reject u /trap/;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF
my @pids;

END {
    local $?;
    kill 'TERM', @pids;
    waitpid $_, 0 for @pids;
}


# a client of the program over a store

sub start
{
    my ($store, @options) = @_;

    my $port = UrlStore::Test::free_port();
    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        @pids = ();
        $ENV{PYTHONPATH} = "$UrlStore::Test::TOP/clients/python";
        exec '/usr/bin/python3', '-B', '-m', 'urlstore.seencheck', '--listen',
            "127.0.0.1:$port", @options, "http://127.0.0.1:$store"
            or POSIX::_exit(127);
    }

    push @pids, $pid;
    ok(wait_until(20, sub {
        IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port)
    }), 'it listens');

    return UrlStore::Client->new('127.0.0.1', $port);
}


our $zeno = start($t->port);


# an URL as gocrawlhq writes it

sub element
{
    my ($value, $type, $more) = @_;

    return qq({"id":"","value":"$value","type":"$type",)
        . ($more // '') . '"status":"","lift_off":0,"timestamp":0}';
}


# its client sends no Content-Type

sub seencheck
{
    my ($body, %h) = @_;

    return $zeno->request('POST', '/api/projects/p/seencheck', $body,
        'X-Auth-Key' => 'k', 'X-Auth-Secret' => 's',
        'X-Identifier' => 'host-p', 'User-Agent' => 'gocrawlhq/1.2.15', %h)
        // UrlStore::Answer->none('no answer');
}


my $a = element('http://example.com/a', 'asset');
my $b = element('HTTP://Example.com/a/../b#x', 'seed', '"via":"\u00e9/",');
my $c = element('http://example.com/c', 'asset');

my $r = seencheck("[$a,$b]");
is("$r->{status} $r->{body}", "200 [$a,$b]",
    'all are new: 200, the objects byte for byte');

$r = seencheck("[ $a ,\n$c, $b]");
is("$r->{status} $r->{body}", "200 [$c]", 'one is new: that one');

$r = seencheck("[$a,$b,$c]");
is("$r->{status} $r->{body}", '204 ', 'none is new: 204');

$r = seencheck('[' . element('http://example.com/b', 'asset') . ']');
is($r->{status}, 204, 'another spelling of one that is known');

$r = seencheck('[]');
is($r->{status}, 204, 'no URL: 204');

{
    local $zeno = start($t->port, '--set', 'zeno');

    is(seencheck("[$a,$b]")->{body}, "[$a,$b]",
        'with a set: what is stored is new to it');
    is(seencheck("[$a,$b]")->{status}, 204, '... once');
}

my $d = element('http://example.com/d', 'asset');
gzip(\"[$d]", \(my $packed));
$r = seencheck($packed, 'Content-Encoding' => 'gzip');
is("$r->{status} $r->{body}", "200 [$d]", 'a gzip body');

# Zeno looks for the answer by another spelling: its query decoded, grouped by
# names, encoded again, in any order of the names

my $q = element('http://example.com/q?b=x,y&a=%7e+1&b=2', 'asset');
$r = seencheck("[$q]");
is(join("\n", map { $_->{value} } @{ $r->json }), <<'END' =~ s/\n\z//r,
http://example.com/q?b=x,y&a=%7e+1&b=2
http://example.com/q?b=x%2Cy&b=2&a=~+1
http://example.com/q?a=~+1&b=x%2Cy&b=2
END
    'a query: each spelling by which Zeno looks for it');
is(seencheck("[$q]")->{status}, 204, '... once');

$q = element('http://example.com/q?' . join('&', map { "$_=1" } 1 .. 6)
    . '#f', 'asset');
$r = seencheck("[$q]");
is($r->{body}, "[$q]", '... none of six names, which have 720 orders');
$q = element('http://example.com/q?b&%zz&;#f', 'asset');
$r = seencheck("[$q]");
is($r->json->[1]{value}, 'http://example.com/q?b=#f', '... what Go leaves out');
$q = element('http://example.com/r?b=a,b', 'asset');
$r = seencheck("[$q]", 'User-Agent' => 'other');
is($r->{body}, "[$q]", '... for its client only');

my $same = element('http://example.com/e', 'asset');
$r = seencheck("[$same,$same]");
is($r->{body}, "[$same]", 'the same URL twice: once');

my $ftp = element('ftp://example.com/', 'asset');
my $trap = element('http://example.com/trap/1', 'asset');
$r = seencheck("[$ftp,$trap]");
is("$r->{status} $r->{body}", "200 [$ftp]",
    'what the store cannot hold is unseen, what a rule rejects is seen');

my $gone = element('http://example.com/gone', 'asset');

is($t->post('/erase', "http://example.com/gone\n",
    'Content-Type' => 'text/plain')->{status}, 202, 'an URL is erased');
is(seencheck("[$gone]")->{status}, 204, '... and seen');

{
    local $zeno = start($t->port, '--set', 'zeno');

    is(seencheck("[$gone]")->{status}, 204, '... with a set, too');
}

for my $bad ('{}', '[1]', '[{"value":1}]', '["http://example.com/"]', '[',
             "[$a", "[$a $b]", "[$a,]", "[$a]x", '', "\xff", '[' x 100000)
{
    $r = seencheck($bad);
    is($r->{status}, 400, 'refused: ' . substr($bad, 0, 30) =~ s/[^ -~]/?/gr);
}

is($r->{headers}{'content-type'}, 'application/problem+json',
    'a problem document');
is(seencheck($packed . 'x', 'Content-Encoding' => 'br')->{status}, 415,
    'another coding');
is(seencheck('x', 'Content-Encoding' => 'gzip')->{status}, 400, 'no gzip');
is(seencheck('[' . join(',', ($a) x 10001) . ']')->{status}, 413,
    'too many elements');

is(seencheck('', 'Content-Length' => $_)->{status}, 400, 'Content-Length')
    for "\xb2", '-1', '1x';
is(seencheck('', 'Content-Length' => 9 x 5000)->{status}, 413, 'a long one');

gzip(\('[' . ' ' x (9 << 20) . ']'), \$packed);
is(seencheck($packed, 'Content-Encoding' => 'gzip')->{status}, 413,
    'too large when unpacked');
is($zeno->request('GET', '/')->{headers}{allow}, 'POST', 'GET is 405');

# a store that takes a second for each of ten requests: 503 before it has
# answered them all, and nothing of what it adds then is lost

my $slow = UrlStore::Fake->new(sub {
    my ($name, $n) = @_;
    return { forward => $t->port, drop => 'sent' }
        if $name eq 'owed' && !-e "$t->{dir}/erased";
    sleep 1 if $name eq 'slow' && $n < 10;
    return { drop => 'sent' } if $name eq 'unsure' && !-e "$t->{dir}/sure";
    return { forward => $t->port };
});

{
    local $zeno = start($slow->port . '/x/slow');

    my $many = '[' . join(',', map { element("http://slow.test/$_", 'asset') }
        1 .. 10000) . ']';

    $r = seencheck($many);
    is($r->{status}, 503, 'a slow store: 503');
    cmp_ok(scalar(() = $slow->requests('x/slow')), '<', 10,
        '... before all parts are answered');
    ok(wait_until(60, sub { ($r = seencheck($many))->{status} != 503 }),
        '... then an answer');
    is("$r->{status} " . ($r->{body} eq $many), '200 1',
        '... which has what was added meanwhile');
    is(seencheck($many)->{status}, 204, '... once');
}

# no answer, and whether it was added is not known; who asks next adds it

{
    local $zeno = start($slow->port . '/x/unsure');

    my $late = '[' . element('http://late.test/', 'asset') . ']';

    is(seencheck($late)->{status}, 503, 'no answer: 503');
    spew("$t->{dir}/sure", '');
    is(seencheck($late)->{status}, 200, '... then it is new');
    is(seencheck($late)->{status}, 204, '... once');
}

# two URLs are added for an answer that is lost, and one of them is erased

{
    local $zeno = start($slow->port . '/x/owed');

    my ($kept, $gone) = map { element("http://owed.test/$_", 'asset') } 1, 2;

    is(seencheck("[$kept,$gone]")->{status}, 503, 'a lost answer: 503');
    like($t->post('/erase', "http://owed.test/2\n",
        'Content-Type' => 'text/plain')->{body}, qr/^\d+\terased\t/,
        '... one URL that it added is erased');
    spew("$t->{dir}/erased", '');
    $r = seencheck("[$kept,$gone]");
    is("$r->{status} $r->{body}", "200 [$kept]", '... and is seen then');
}

$t->stop;
$r = seencheck('[' . element('http://example.com/f', 'asset') . ']');
is("$r->{status} $r->{headers}{'retry-after'}", '503 1',
    'the store is down: 503, which the crawler tries again');
$t->start;
$r = seencheck('[' . element('http://example.com/f', 'asset') . ']');
is($r->{status}, 200, 'it is back');
