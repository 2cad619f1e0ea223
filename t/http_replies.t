#!/usr/bin/perl

# Replies on their way out: every kind of reply, through everything that makes
# its way longer.  Each must arrive whole and once, and what the server holds
# meanwhile must not depend on how slow the client is.
#
#     clients      that read slowly, from small socket buffers; HTTP/1.0;
#                  HTTP/2 with a window of a byte; HEAD; that leave
#     the server   limit_rate, gzip, subrequests, a reload, a shutdown

use strict;
use warnings;

use lib 't/lib';
use UrlStore::H2;
use UrlStore::Test;

use IO::Select;
use IO::Socket::INET;
use IO::Uncompress::Gunzip ();
use Time::HiRes qw(sleep time);

use constant SITES => 40;
use constant URLS => 40_000;

my $conf = <<'CONF';
urlstore_zone u 64m marks=m sites=on;
send_timeout 20s;
client_max_body_size 8m;
keepalive_requests 100000;
server {
    listen 127.0.0.1:%%PORT%%;
    listen 127.0.0.1:%%PORT1%% sndbuf=8k;
    listen 127.0.0.1:%%PORT2%% http2 sndbuf=8k;
    large_client_header_buffers 4 32k;
    urlstore_max_batch 100000;

    location / { urlstore_api u; }

    location /rate/ { limit_rate 400k; urlstore_api u; }

    location /gzip/ {
        gzip on;
        gzip_http_version 1.0;
        gzip_min_length 1;
        gzip_types text/plain application/json application/x-ndjson
                   application/yaml application/problem+json;
        urlstore_api u;
    }

    location /auth/ { auth_request /known; urlstore_api u; }
    location = /known { set $args url=http://site1.com/x/1; urlstore_seen u; }

    location /added/ {
        add_before_body /urls;
        add_after_body /url/1;
        addition_types *;
        urlstore_api u;
    }

    ssi_types *;
    ssi_value_length 8k;

    location = /page {
        ssi on;
        return 200 '<!--# include virtual="$arg_one" -->|<!--# include
            virtual="$arg_two" -->|<!--# include virtual="$arg_one" -->';
    }
}
CONF

my $t = UrlStore::Test->new->run($conf);

my @text = ('Content-Type' => 'text/plain');
my @json = ('Content-Type' => 'application/json');
my @ndjson = (Accept => 'application/x-ndjson');

my @urls = map { 'http://site' . $_ % SITES . '.com/'
    . substr('x' x ($_ % 97), 0, 96) . "/$_" } 0 .. URLS - 1;

is($t->post('/add?brief=1', join("\n", @urls), @text)->{status}, 200, 'filled');

my $lines = join '', map { "$_\n" } @urls[0 .. 9999];
my $unseen = join '', map { "http://un.seen/$_\n" } 1 .. 10000;
my $list = '[' . join(',', map { qq("$_") } @urls[0 .. 4999]) . ']';
my $ids = join "\n", 0 .. 9999;
my $some = join ',', 0 .. 2999;
my $few = join ',', 0 .. 399;                   # of what SSI takes

# small, in a moment; and large, of more than all buffers hold

my %small = (
    single => [ 'GET', '/seen?url=http://site1.com/x/1' ],
    unknown => [ 'GET', '/seen?url=http://un.seen/' ],
    refused => [ 'GET', '/seen?url=x' ],
    add => [ 'POST', '/add', "$urls[5]\n$urls[6]\n", @text ],
    url => [ 'GET', '/url/3' ],
    redirect => [ 'GET', '/url/3?redirect=1' ],
    missing => [ 'GET', '/url/99999999' ],
    ids => [ 'GET', '/url/1,2,3,99999999' ],
    urls => [ 'GET', '/urls?limit=3&summary=1' ],
    empty => [ 'GET', '/urls?from=9999999' ],
    none => [ 'GET', '/urls?mark=m' ],
    prefix => [ 'GET', '/prefix?url=http://site1.com/x/1/y' ],
    site => [ 'GET', '/site/site1.com' ],
    normalize => [ 'GET', '/normalize?explain=1&url=HTTP://A.com:80/../x' ],
    health => [ 'GET', '/health' ],
    nothing => [ 'GET', '/nothing' ],
    method => [ 'GET', '/add' ]
);

my %large = (
    add => [ 'POST', '/add', $lines, @text ],
    'add, JSON' => [ 'POST', '/add', $list, @json ],
    'add, NDJSON' => [ 'POST', '/add?summary=1', $lines, @text, @ndjson ],
    seen => [ 'POST', '/seen?sites=1', $unseen, @text ],
    mark => [ 'POST', '/mark/m', $ids, @text ],
    ids => [ 'POST', '/url', $ids, @text ],
    'ids, JSON' => [ 'POST', '/url', "[" . $ids =~ tr/\n/,/r . "]", @json ],
    'ids, path' => [ 'GET', "/url/$some" ],
    'ids, 400' => [ 'GET', "/url/$few" ],
    urls => [ 'GET', '/urls?limit=20000' ],
    'urls, JSON' => [ 'GET', '/urls?limit=10000', undef,
        Accept => 'application/json' ],
    'urls, NDJSON' => [ 'GET', '/urls?limit=10000', undef, @ndjson ],
    'urls, few' => [ 'GET', '/urls?limit=50000&site=site7.com&summary=1' ],
    openapi => [ 'GET', '/openapi.yaml' ]
);

# whose figures change from one time to the next

my %figures = (
    metrics => [ 'GET', '/metrics' ],
    stats => [ 'GET', '/stats' ],
    page => [ 'GET', '/' ]
);

# what a client gets over an easy way: all the same, twice

my %want;
my %all = ((map { ("$_ (small)" => $small{$_}) } keys %small),
    (map { ("$_ (large)" => $large{$_}) } keys %large), %figures);
my $wrong = 0;

$_->[2] //= undef for values %all;

$t->post('/mark/m', $ids, @text);
delete $all{'none (small)'};

for my $name (sort keys %all) {
    my @two = map { body($t->request(@{ $all{$name} }), $name) } 1, 2;

    $want{$name} = $two[0];
    $wrong++ if $two[0] ne $two[1] || $two[0] eq '200 ' && $name !~ /empty/;
}

is($wrong, 0, 'one way is repeatable');
ok($want{'urls (large)'} eq
    '200 ' . join('', map { "$_\t$urls[$_]\n" } 0 .. 19999), 'and right');
ok($want{'ids (large)'} eq
    '200 ' . join('', map { "$_\t$urls[$_]\n" } 0 .. 9999), 'ids, too');

# --- slow readers

check('small socket buffers', sub { slowly($t->port(1), '', '1.1', @_) });
check('HTTP/1.0', sub { slowly($t->port(1), '', '1.0', @_) }, qr/large/);
check('half-closed', sub { slowly($t->port(1), '', 'half', @_) },
    qr/^(?:add|mark)\b/);
check('gzip', sub { slowly($t->port(1), '/gzip', '1.1', @_,
    'Accept-Encoding' => 'gzip') });
check('half-closed, gzip', sub { slowly($t->port(1), '/gzip', 'half', @_,
    'Accept-Encoding' => 'gzip') }, qr/^(?:add|mark)\b/);

# --- limit_rate: 400 KB a second, and one in advance

my $start = time;
my $many = 'urls (large)';

check('limit_rate', sub { fast('/rate', @_) }, qr/urls, few|ids, path|small/);
ok(fast('/rate', @{ $all{$many} }) eq $want{$many},
    'limit_rate, and a long one');
cmp_ok(time - $start, '>', length($want{$many}) / 400_000 - 2,
    'which is obeyed');

# a delay is not taken for the client's slowness, nor a request let go without

my $limited = UrlStore::Client->new('127.0.0.1', $t->port, timeout => 20);
my @several = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1',
    PeerPort => $t->port) } 1 .. 3;

$_->syswrite("GET /rate/urls?limit=8000 HTTP/1.0\r\n\r\n") for @several;

my @got = drain(@several);

is(scalar(grep { s/^.*?\r\n\r\n//sr
    eq join '', map { "$_\t$urls[$_]\n" } 0 .. 7999 } @got), 3,
    'several at a time');

# --- HTTP/2: windows of a byte, and of some

check('HTTP/2, a window of 1', sub { h2(1, 1, @_) }, qr/small|stats/);
check('HTTP/2, small windows', sub { h2(1, 7919, @_) });
check('HTTP/2, 64 KB', sub { h2(65535, 65535, @_) });

# --- HEAD: the same head, and no body

$wrong = '';

for my $name (sort grep { $all{$_}[0] eq 'GET' } keys %all) {
    my (undef, @rest) = @{ $all{$name} };
    my $c = $t->client;
    my $get = $c->request('GET', @rest);
    my $head = $c->request('HEAD', @rest);

    # of what is made while it is sent the length is not known

    for my $r ($get, $head) {
        delete $r->{headers}{date};
        delete @{ $r->{headers} }{qw(content-length transfer-encoding)}
            if $name =~ /urls|ids|empty/ || $figures{$name};
    }

    $wrong .= " $name" if $head->{status} != $get->{status}
        || $head->{body} ne '' || sorted($head) ne sorted($get);

    $wrong .= " after $name" if $c->request('GET', '/url/3')->{body}
        ne "3\t$urls[3]\n" =~ s/^3\t//r;
}

is($wrong, '', 'HEAD');

# --- subrequests

my $second = join '', map { "$_\t$urls[$_]\n" } 0 .. 2999;

for my $name ('urls (large)', 'ids, 400 (large)', 'url (small)',
    'openapi (large)', 'empty (small)', 'site (small)')
{
    my $body = $want{$name} =~ s/^200 //r;
    my $page = slowly($t->port(1), '', '1.1', 'GET',
        "/page?one=$all{$name}[1]&two=/urls?limit=3000");

    is(length $page, length "200 $body|$second|$body", "in a page: $name");
    ok($page eq "200 $body|$second|$body", '  whole, and in order');
}

my $first = join '', map { "$_\t$urls[$_]\n" } 0 .. 999;

for my $name ('urls (large)', 'site (small)', 'ids, path (large)') {
    ok(slowly($t->port(1), '/added', '1.1', @{ $all{$name} }) eq '200 ' . $first
        . $want{$name} =~ s/^200 //r . "$urls[1]\n",
        "between two others: $name");
}

ok(slowly($t->port(1), '/auth', '1.1', 'GET',
    '/urls?limit=20000') eq $want{$many},
    'after auth_request');

# --- clients that leave in the middle, and at any place

for my $name (sort keys %large) {
    for my $n (1, 5000, 20_000) {
        my $s = ask($t->port(1), '', '1.1', @{ $large{$name} });
        my $left = $n;

        while ($left > 0 && sysread $s, my $some, 4096) {
            $left -= length $some;
        }

        # with a FIN, or a RST

        setsockopt($s, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0) if $n > 1;
        close $s;
    }

    my $h2 = UrlStore::H2->new('127.0.0.1', $t->port(2), window => 3000);
    $h2->request(@{ $large{$name} }, stop => 3000);
    my $r = $h2->request('GET', '/url/3', undef);
    is($r && $r->{body}, "$urls[3]\n", "left in the middle: $name");
}

ok(fast('', @{ $all{$many} }) eq $want{$many}, 'and all is well');

# --- memory: many slow clients of large replies hold little

SKIP: {
    skip 'memory is the sanitizer\'s', 4 if $ENV{US_ASAN} || $ENV{US_VALGRIND};

    my $t = UrlStore::Test->new(workers => 1)->run($conf);

    # long URLs: 10,000 ids are 50 KB, and 80 MB of URLs

    my @long = map { 'http://long.com/' . 'y' x 7900 . "/$_" } 1 .. 500;

    $t->post('/add?brief=1', join("\n", @long), @text);

    my $ids = join "\n", map { $_ % 500 } 1 .. 10_000;
    my $before = rss($t);

    for my $request ([ 'POST', '/url', $ids, @text ],
        [ 'POST', '/url', '[' . $ids =~ tr/\n/,/r . ']', @json ],
        [ 'GET', '/urls?limit=500', undef ])
    {
        my @slow = map { ask($t->port(1), '', '1.1', @$request) } 1 .. 30;

        sysread $_, my $some, 100 for @slow;

        is($t->get('/url/3')->{status}, 200, 'others are served');

        my $now = rss($t);

        cmp_ok($now - $before, '<', 30 * 512,
            "30 clients do not read: $now KB, $before before");
        close $_ for @slow;
    }

    my $after = 0;

    ok(wait_until(5, sub {
        $after = rss($t);
        return $after - $before < 6 * 1024;
    }), "and the memory is returned: $after KB");
}

# --- a reload, and a shutdown, while replies are on their way

my @way = (sort grep { length $want{$_} > 200_000 } keys %want)[0 .. 6];

for my $how ('HUP', 'QUIT') {
    my (@socks, @names);

    for my $port (1, 0) {
        for my $name (@way, @way) {
            push @socks, ask($t->port($port), '', '1.1', @{ $all{$name} });
            push @names, $name;
        }

        push @socks, ask($t->port, '/rate', '1.1', @{ $all{$many} });
        push @names, $many;
    }

    my @h2 = map { UrlStore::H2->new('127.0.0.1', $t->port(2),
        window => 1000) } 1 .. 3;
    my $done = 0;

    # each has begun

    for my $s (@socks) {
        sysread $s, my $some, 1;
    }

    my $say = sub {
        return if $done++;
        $how eq 'HUP' ? ok($t->reload, 'reloaded meanwhile')
            : $t->signal('QUIT');
    };

    $say->() if $how eq 'QUIT';

    my @after = map { $_->request(@{ $all{$many} },
        pause => $say, grant => 9999) } @h2[0 .. ($how eq 'HUP' ? 2 : -1)];

    my @got = drain(@socks);
    my $bad = '';

    for my $i (0 .. $#socks) {
        my $body = parse("H$got[$i]");

        $bad .= " $names[$i]: " . length($body // '') . ' of '
            . length($want{$names[$i]}) if ($body // '') ne $want{$names[$i]};
    }

    is($bad, '', "$how: " . @socks . ' replies, each whole and once');

    ok(!(grep { !$_ || "200 $_->{body}" ne $want{$many} } @after),
        '  over HTTP/2 as well') if @after;
}

ok(wait_until(10, sub { !UrlStore::Test::alive($t->{pid}) }),
    'and the server has left');

# an id that is deleted before its line is written has no URL, and nothing else
# in its place

$t->start;

my $s = ask($t->port(1), '', '1.1', 'POST', '/add', join('', map {
    "http://deleted.test/" . 'y' x 300 . "/$_\n" } 1 .. 9000), @text,
    Accept => 'application/json');

sysread $s, my $begins, 1;
sleep 0.5;

is($t->forget("/url/$_")->{status}, 204, "$_ is deleted")
    for 0, 8998, 8999;

my ($reply) = drain($s);
my $items = JSON::PP::decode_json(parse("H$reply") =~ s/^200 //r)->{results};

is(scalar @$items, 9000, 'all are answered');
is(join(' ', grep { ($items->[$_]{url} // '') !~ m{/@{[$_ + 1]}\z}
    } 0 .. 8999), '8998 8999', '  those that are deleted without a URL');
is($items->[8999]{url}, undef, '  null');
is("@{$items->[8999]}{qw(id status)}", '8999 new', '  as new');
ok($t->stop, 'stopped');

unlike($t->error_log, qr/client timed out/,
    'no request has waited for a client that had left');


# the status and the body; figures are no part of it

sub body
{
    my ($r, $name) = @_;

    my $body = ref $r ? "$r->{status} $r->{body}" : $r // 'nothing';

    $body =~ s/\d+//g, $body = substr($body, 0, 40) . substr $body, -40
        if $figures{$name};

    return $body;
}


sub check
{
    my ($what, $how, $which) = @_;

    my $bad = '';

    for my $name (sort keys %want) {
        next if $which && $name !~ $which;

        my $got = body($how->(@{ $all{$name} }), $name);

        next if $got eq $want{$name};

        $bad .= " $name";
        diag("$what, $name: " . length($got) . ' of ' . length($want{$name})
            . ': ' . substr $got, 0, 100);
    }

    is($bad, '', $what);
}


sub fast
{
    my ($prefix, $method, $path, @rest) = @_;

    my $c = UrlStore::Client->new('127.0.0.1', $t->port, timeout => 10,
        no_retry => 1);
    my $r = $c->request($method, $prefix . $path, @rest);

    # what follows on the connection is the next answer

    my $next = $c->request('GET', '/url/3');

    return 'out of step' if !$r || !$next || $next->{body} ne "$urls[3]\n";
    return "$r->{status} $r->{body}";
}


sub h2
{
    my ($window, $grant, @request) = @_;

    my $h2 = UrlStore::H2->new('127.0.0.1', $t->port(2), window => $window,
        timeout => 10);
    my $r = $h2->request(@request, grant => $grant);

    return $h2->{fault} if !$r;

    my $next = $h2->request('GET', '/url/3', undef);

    return 'out of step' if !$next || $next->{body} ne "$urls[3]\n";
    return "$r->{status} $r->{body}";
}


# a socket over which this has been asked

sub ask
{
    my ($port, $prefix, $version, $method, $path, $body, %h) = @_;

    my $s = IO::Socket::INET->new(Proto => 'tcp') or die "socket: $!";

    setsockopt($s, SOL_SOCKET, SO_RCVBUF, pack 'i', 16384);
    $s->connect(Socket::pack_sockaddr_in($port,
        Socket::inet_aton('127.0.0.1'))) or die "connect: $!";
    setsockopt($s, 6, 1, 1);

    $h{'Content-Length'} = length $body if defined $body;
    $h{Host} = 'localhost';

    my $head = "$method $prefix$path HTTP/$version\r\n"
        . join('', map { "$_: $h{$_}\r\n" } sort keys %h) . "\r\n";

    $head .= $body // '';

    for (my $at = 0; $at < length $head; ) {
        $at += syswrite($s, $head, 65536, $at) // die "write: $!";
    }

    return $s;
}


# Asks, then reads what comes in small portions, with a rest at first and now
# and then.  Over HTTP/1.1 a second answer must follow in its place.  "half" is
# HTTP/1.0 by a client that has no more to say.

sub slowly
{
    my ($port, $prefix, $version, @request) = @_;

    my $half = $version eq 'half';

    $version = '1.0' if $half;

    my $s = ask($port, $prefix, $version, @request);
    my ($all, $n) = ('', 0);
    my $next = "GET /url/3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

    syswrite $s, $next if $version ne '1.0';
    shutdown $s, 1 if $half;
    sleep 0.02;

    for ( ;; ) {
        IO::Select->new($s)->can_read(10) or return 'stalled after '
            . length $all;
        sysread($s, $all, 1500, length $all) or last;
        sleep 0.01 if ++$n % 200 == 0;
    }

    if ($version ne '1.0') {
        $all =~ s/HTTP.1.1 200 OK\r\n(?:[^\r]+\r\n)+\r\n\Q$urls[3]\E\n\z//s
            or return 'out of step';
    }

    return parse($all);
}


# the status and body of one answer, and of nothing more

sub parse
{
    my ($all) = @_;

    $all =~ s/^HTTP.1.1 (\d+) .*?\r\n(.*?)\r\n\r\n//s or return;

    my ($status, $head, $body) = ($1, "$2\r\n", '');

    if ($head =~ /^Transfer-Encoding: chunked\r$/mi) {
        for ( ;; ) {
            $all =~ s/^([0-9a-f]+)\r\n//i or return 'broken chunk';

            my $n = hex $1;

            $body .= substr $all, 0, $n, '';
            $all =~ s/^\r\n// or return 'broken chunk';
            last if $n == 0;
        }

    } elsif ($head =~ /^Content-Length: (\d+)\r$/mi) {
        $body = substr $all, 0, $1, '';
        return 'short' if length $body != $1;

    } else {
        ($body, $all) = ($all, '');
    }

    return length($all) . " bytes follow" if $all ne '';

    if ($head =~ /^Content-Encoding: gzip\r$/mi) {
        my $plain;

        IO::Uncompress::Gunzip::gunzip(\$body, \$plain) or return 'no gzip';
        $body = $plain;
    }

    return "$status $body";
}


# reads them all, in turns, until each has had its answer; connections that
# are kept alive end with it

sub drain
{
    my (@socks) = @_;

    my %at = map { $socks[$_] => $_ } 0 .. $#socks;
    my @got = ('') x @socks;
    my $sel = IO::Select->new(@socks);
    my $last = time;

    while ($sel->count && time - $last < 15) {
        for my $s ($sel->can_read(1)) {
            my $i = $at{$s};

            $last = time;

            sysread($s, $got[$i], 4096, length $got[$i])
                && $got[$i] !~ /\r\n0\r\n\r\n\z/ or $sel->remove($s);
        }
    }

    return @got;
}


sub sorted
{
    my ($r) = @_;

    return join '|', map { "$_: $r->{headers}{$_}" }
        sort keys %{ $r->{headers} };
}


# KB of the worker's own memory; its zones are shared

sub rss
{
    my ($t) = @_;

    my ($pid) = $t->worker_pids;
    my $status = slurp("/proc/$pid/status");
    my ($kb) = $status =~ /^RssAnon:\s+(\d+) kB/m;

    return $kb;
}
