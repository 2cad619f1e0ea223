#!/usr/bin/perl

# No request holds its worker: one worker answers others while it inflates a
# bomb, reads a body of nothing, matches expressions made to be slow, reads and
# writes ten thousand items.  And what is slow has an end.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

use Compress::Raw::Zlib qw(Z_SYNC_FLUSH WANT_GZIP);
use IO::Compress::Gzip ();
use IO::Socket::INET;
use Time::HiRes qw(sleep time);

my $t = UrlStore::Test->new(workers => 1)->run(<<'CONF');
urlstore_zone u 64m;
urlstore_zone rules 16m;
urlstore_zone short 16m;
urlstore_reject rules name=slow "(x+x+)+y";
urlstore_reject rules "/trap/";
urlstore_rewrite rules name=rewritten "(b+)+c$" x;
client_max_body_size 64m;
urlstore_max_body 64m;
keepalive_requests 1000000;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /rules/ { urlstore_api rules; }
    location /many/ { urlstore_api u; urlstore_max_batch 100000; }
    location /short/ { urlstore_api short; urlstore_max_reply 64k; }
    location /held/ { urlstore_api u; urlstore_max_body 8m; }

    # mirror reads the whole body first

    location /whole/ {
        client_body_buffer_size 16m;
        mirror /mirror;
        urlstore_api u;
    }
    location = /mirror { internal; return 204; }
}
CONF

my @text = ('Content-Type' => 'text/plain');
my @form = ('Content-Type' => 'application/x-www-form-urlencoded');
my @json = ('Content-Type' => 'application/json');
my @packed = ('Content-Encoding' => 'gzip');
my @gzip = (@text, @packed);
my $worker;
my $r;

my @long = map { "http://long.test/$_/" . 'y' x 4000 } 1 .. 200;

is($t->post('/add?brief=1', join("\n", @long), @text)->{status}, 200, 'filled');
ok(wait_until(5, sub { ($worker) = $t->worker_pids }), 'one worker');

# --- bodies that do not end: a few KB each, of urlstore_max_body inflated

my $times = $ENV{US_VALGRIND} || $ENV{US_ASAN} ? 4 : 1.5;
my $before = private_mb($worker);

for ([ '/held/add', '{"urls":[', '0,', @json ],
    [ '/held/add', '{"urls":[', '"",', @json ],
    [ '/held/url', '{"ids":[', '0,', @json ],
    [ '/held/add', 'url=a', 'a', @form ],
    [ '/held/add', '{"url":"a","x":"', 'a', 'Content-Type' =>
        'application/x-ndjson' ])
{
    my ($path, $first, $part, @type) = @$_;

    # a sanitizer keeps what was freed

    $before = private_mb($worker) if $ENV{US_ASAN};

    my @open = map { unended($path, $first . $part
        x ((8e6 - length $first) / length $part), @type) } 1 .. 4;
    my $most = $before + 4 * 8 * $times;

    ok(wait_until(10, sub { private_mb($worker) > $before + 4 * 7 }),
        "$path is kept: $first$part$part...");
    ok(!wait_until(1, sub { private_mb($worker) > $most }),
        sprintf '  once, and no more: %.0f MB of %.0f', private_mb($worker)
            - $before, $most - $before);

    close $_ for @open;
    wait_until(3, sub { private_mb($worker) < $before + 8 });
}

# --- a reply over its limit has all ids that were given; how many are processed
# by then is a matter of the worker's turns

my $all = 0;

for my $n (1 .. 2) {
    $r = $t->post('/short/add', join("\n", map { "http://short.test/$n/$_/"
        . 'y' x 330 } 1 .. 1000), @text, Accept => 'application/json');
    my $in = $r->json;
    my @results = @{$in->{results}};

    $all += @results;
    is($r->{status}, 413, 'urlstore_max_reply');
    is($in->{processed}, @results, '  what was processed is answered');
    is($in->{new}, @results, '  all of it is new');
    is($t->stats('/short')->{urls}, $all, '  as the store has it');
    is(grep({ $_->{url} =~ m{^http://short.test/$n/} } @results), @results,
        '  with its URLs');
    is($results[-1]{id}, $all - 1, '  and ids');
}

# --- bodies that take long: others are answered all the while

my $lines = join '', map { "http://many.test/$_\n" } 1 .. 40_000;

# each run of them costs nearly as much as the limit of a match allows

my $bad = 'http://x.test/' . ('x' x 12 . '/') x 600 . 'by';

for ([ 'a bomb of newlines', '/seen', gzip("\n" x (16 << 20)), @gzip ],
    [ 'newlines as they are', '/seen', "\n" x (16 << 20), @text ],
    [ 'empty gzip members', '/whole/seen', gzip('') x 800_000, @gzip ],
    [ '40,000 new URLs', '/many/add', $lines, @text ],
    [ '40,000 in JSON', '/many/seen',
        '[' . join(',', map { qq("http://a.test/$_") } 1 .. 40_000) . ']',
        @json ],
    [ '40,000 in a form', '/many/seen',
        join('&', map { "url=http://a.test/$_" } 1 .. 40_000), @form ],
    [ 'a form of nothing', '/seen', gzip('url=http://a.test/' . '&' x 8e6),
        @form, @packed ],
    [ 'a form of other fields', '/seen',
        gzip('url=http://a.test/' . '&x' x 4e6), @form, @packed ],
    [ 'JSON of other members', '/seen', gzip('{"url":"http://a.test/","x":['
        . '0,' x 4e6 . '0]}'), @json, @packed ],
    [ 'a line of another member', '/seen', gzip('{"url":"http://a.test/",'
        . '"x":"' . 'y' x 8e6 . '"}'), 'Content-Type' =>
        'application/x-ndjson', @packed ],
    [ '40,000 before their base', '/many/seen?brief=1',
        '{"urls":[' . join(',', map { qq("$_") } 1 .. 40_000)
        . '],"base":"http://a.test/"}', @json ],
    [ '40,000 short links of a long page', '/many/seen?brief=1&base='
        . 'http://base.test/' . 'z' x 6000, "?a\n" x 40_000, @text ],
    [ 'ids of long URLs', '/many/url',
        join("\n", map { $_ % 200 } 1 .. (full() ? 40_000 : 8000)),
        @text ],
    [ 'slow expressions', '/rules/seen', "$bad\n" x 500, @text ])
{
    my ($what, $path, $body, @type) = @$_;

    my ($status, $seconds, $n, $longest, $cpu, $busy) = beside($path, $body,
        @type);

    is($status, 200, $what);

    # a turn takes a millisecond or two of the worker's CPU time, which does not
    # depend on what else the machine does

    cmp_ok($n, '>', ($busy || $seconds * 1000) / 50 / slower(),
        sprintf '  %d others are answered in %d ms, the slowest in %d', $n,
            $seconds * 1000, $longest * 1000);

    # a match that meets its limit takes most

    my $turn = ($what eq 'slow expressions' ? 60 : 25) * slower();

    SKIP: {
        skip('no /proc/PID/schedstat', 1) if !cpu($worker);

        cmp_ok($cpu, '<', $turn, sprintf '  the worker has spent %.1f ms of '
            . 'CPU time between two of them', $cpu);
    }
}

# --- rules have a budget: what is slow is refused, and what is not goes on

my @in = ("$bad\n") x 200;

push @in, "http://x.test/fine\n", "http://x.test/trap/\n",
    "http://x.test/xxy\n", "http://x.test/bbbc\n";

$r = $t->post('/rules/seen', join('', @in), @text);

my @out = split /\n/, $r->{body};

is(scalar @out, @in, 'an answer for each');
is_deeply([ @out[-4 .. -1] ], [ "-\tunseen\thttp://x.test/fine",
    "-\trejected\trule:2", "-\trejected\trule:slow",
    "-\tunseen\thttp://x.test/x" ], 'also when the budget is spent');
is($out[199], "-\trejected\tbudget", 'the last ones by the budget');
is($out[0], "-\tunseen\t$bad", 'the first one gets its time');
is_deeply([ sort { $a cmp $b } keys %{{ map { $_ => 1 } @out[0 .. 199] }} ],
    [ "-\trejected\tbudget", "-\tunseen\t$bad" ],
    'which is an answer, or the end of the budget');

my $spent = grep { /budget/ } @out;
my ($counted) = $t->get('/rules/metrics')->{body}
    =~ /^urlstore_over_budget_total\{zone="rules"\} (\d+)$/m;

cmp_ok($counted, '>=', $spent, "they are counted: $counted");
is($t->get('/rules/stats')->json->{over_budget}, $counted, 'also in /stats');

# a single URL, in every place that has one

for my $path ('seen', 'normalize', 'prefix') {
    $r = $t->get("/rules/$path?url=http://x.test/xxxy");
    is("$r->{status} " . $r->json->{reason}, '422 rule:slow', "/$path");
    is($r->json->{detail}, 'the rule "slow" of the zone refuses the URL',
        '  says so');
}

unlike($t->error_log, qr/reason=rule:\(/, 'no log line has the expression');
is($t->get('/rules/normalize?explain=1&url=http://x.test/bbc')
    ->json->{steps}[0]{step}, 'rewrite rewritten', 'nor has a step');


# CPU time of the worker so far, in ms

sub cpu
{
    my ($pid) = @_;

    return slurp("/proc/$pid/schedstat", 1) =~ /^(\d+)/ ? $1 / 1e6 : 0;
}


# memory of its own; its zones are shared

sub private_mb
{
    my ($pid) = @_;

    return slurp("/proc/$pid/status") =~ /^RssAnon:\s+(\d+) kB/m
        ? $1 / 1024 : 0;
}


# a connection with a request whose body does not end, packed

sub unended
{
    my ($path, $body, %headers) = @_;

    my $z = Compress::Raw::Zlib::Deflate->new(-WindowBits => WANT_GZIP,
        -AppendOutput => 1);
    my $out = '';

    $z->deflate($body, $out);
    $z->flush($out, Z_SYNC_FLUSH);

    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1:' . $t->port)
        or die "connect: $!";

    syswrite $s, "POST $path HTTP/1.1\r\nHost: a\r\n"
        . "Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n"
        . join('', map { "$_: $headers{$_}\r\n" } keys %headers)
        . sprintf("\r\n%x\r\n%s\r\n", length $out, $out);

    return $s;
}


# Status and seconds of a POST; how many others were answered meanwhile, the
# longest wait among them, and the most CPU time of the worker between two.

sub beside
{
    my ($path, $body, @type) = @_;

    my $file = "$t->{dir}/others";
    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        my $client = $t->client;
        my $end = time + 60;
        my $last = time;
        my $before = cpu($worker);

        open my $fh, '>', $file or POSIX::_exit(1);
        $fh->autoflush(1);

        while (time < $end && getppid() != 1) {
            my $r = $client->request('GET', '/health') or last;
            my $now = time;
            my $cpu = cpu($worker);

            print $fh "$now ", $now - $last, ' ', $cpu - $before, "\n";
            $last = $now;
            $before = $cpu;
        }

        POSIX::_exit(0);
    }

    wait_until(10, sub { -s $file });

    my $start = time;
    my $idle = cpu($worker);
    my $r = $t->post($path, $body, @type);
    my $busy = cpu($worker) - $idle;
    my $end = time;

    # the one that waited for the end of this one counts as well

    wait_until(5, sub { slurp($file) =~ /^([\d.]+) .*\n\z/m && $1 > $end });
    kill 'KILL', $pid;
    waitpid $pid, 0;

    my ($n, $longest, $most) = (0, 0, 0);

    for (split /\n/, slurp($file)) {
        my ($at, $took, $cpu) = /^(\S+) (\S+) (\S+)$/ or next;

        next if $at < $start;
        $longest = $took if $took > $longest;
        $most = $cpu if $cpu > $most;
        last if $at > $end;
        $n++;
    }

    unlink $file;

    return ($r->{status}, $end - $start, $n, $longest, $most, $busy);
}


sub gzip
{
    my ($in) = @_;
    my $out;

    IO::Compress::Gzip::gzip(\$in, \$out) or die;
    return $out;
}
