#!/usr/bin/perl

# Requests that find the journal's ring full, because the disk is slow: they
# wait for room and are answered; if the disk then refuses, they are, too, and
# nothing is half done.  t/fault/disk.c is the disk.

use strict;
use warnings;

use lib 't/lib';

use Digest::SHA qw(sha1_hex);
use Storable qw(lock_store lock_retrieve);
use Time::HiRes qw(sleep time);

use UrlStore::Test;

need_fault_disk();

my $t = UrlStore::Test->new(disk => 1);

$t->allow(qr/\[alert\].*write to journal\.\S+ at \d+ failed/);

my $conf = <<'CONF';
log_format u '$request_uri $status $urlstore_status $urlstore_id $urlstore_url';
urlstore_zone u 3m path=%%DIR%%/data sync=always marks=m;
urlstore_zone v 3m path=%%DIR%%/lazy sync=1s marks=m;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; access_log %%DIR%%/access.log u; }
    location /lazy/ {
        urlstore_api v;
        location /lazy/knows {
            urlstore_api v;
            return 200 "$urlstore_status $urlstore_id";
        }
    }
    location = /quota {
        urlstore_quota $http_x_client 1/h burst=1 zone=q:64k;
        urlstore_add u;
    }
}
CONF

$t->run($conf);

my @text = ('Content-Type' => 'text/plain');
my @lines = grep { m{^https?://[\w.-]+/} }
    @{ corpus('trackawesomelist_md', 300) };
my (%later, $r);

ok($t->ready(write => 1), 'ready');
is($t->post('/add', join("\n", @lines), @text)->{status}, 200, 'added');

my $ids = $t->get('/stats')->json->{next_id};
my $marks = join '', map { "$_\n" } 0 .. $ids - 1;

cmp_ok($ids, '>', 200, 'some URLs');

# --- a delete that is not durable yet: only requests that would reveal it wait

$t->disk('slow 3000');
later(forget => 'DELETE', '/url/5');
ok(wait_until(2, sub { my $s = $t->get('/stats')->json;
    $s->{published} > $s->{durable} }), 'deleted, but not durable');

my $start = time;

is($t->get('/url/0')->{status}, 200, 'another id');
is($t->post('/seen', "$lines[0]\n", @text)->{status}, 200, 'a URL');
is($t->get('/url/0,1,2')->{status}, 200, 'some ids');
cmp_ok(time - $start, '<', 0.8, '  are answered at once');

my @gone = ('/url/5', '/url/0,5', '/seen?url=http://no.example/');

later($_ => 'GET', $gone[$_]) for 0 .. 2;
later(mark => 'POST', '/mark/m', "5\n", @text);
is(answer($_)->{status}, 503, "$gone[$_] waits, a second at most") for 0 .. 2;

ok(wait_until(1, sub {
    slurp("$t->{dir}/access.log") =~ m{^/url/5 503 - - -$}m
}), 'the log has no other answer');
ok(waits('mark'), 'a mark that says "deleted" waits');

is(answer('forget')->{status}, 204, 'durable');
is(answer('mark')->{body}, "5\tdeleted\t-\n", '  and the mark says so');
is($t->get('/url/5')->{status}, 410, '  and reported');
is($t->get('/url/0,5')->{body} =~ s/.*\n//r, "5\t-\tdeleted\n", '  in lists');
$t->disk('');

# --- a list of ids that comes slowly: what was added meanwhile is not durable

my $new = $t->get('/stats')->json->{next_id};
my $list = open(my $slowly, '-|') // die "fork: $!";

if ($list == 0) {
    print $t->http('', pause => 1, parts => [ "POST /url HTTP/1.1\r\n"
        . "Host: x\r\nConnection: close\r\nContent-Type: text/plain\r\n"
        . 'Content-Length: ' . length("$new\n") . "\r\n\r\n", "$new\n" ]);
    close STDOUT;
    POSIX::_exit(0);
}

sleep 0.3;
$t->disk('slow 4000');
later(add => 'POST', '/add?url=http://meanwhile.example/', '');
like(join('', <$slowly>), qr{^HTTP/1.1 503 }, 'it is not reported');
close $slowly;
is(answer('add')->{status}, 201,
    '  before the client that added it has an answer');
is($t->get("/url/$new")->{body}, "http://meanwhile.example/\n", '  then it is');
$t->disk('');

# --- without sync=always nothing is reported that is not written

is($t->post('/lazy/add', "http://a.example/\nhttp://a.example/b/\n", @text)
    ->{status}, 200, 'another zone, sync=1s');
$t->disk('stall 1');
later(lazy => 'POST', '/lazy/add?url=http://a.example/b/c', '');
ok(wait_until(2, sub { $t->get('/lazy/stats')->json->{urls} == 3 }),
    'added, but not written');

my @paths = ('/url/2', '/url/0,2', '/seen?url=http://a.example/b/c',
    '/prefix?url=http://a.example/b/c/d', '/urls?mark=!m');

later($_ => 'GET', "/lazy$paths[$_]") for 0 .. $#paths;

$start = time;
is($t->get('/lazy/urls?summary=1')->{body}, "0\thttp://a.example/\n"
    . "1\thttp://a.example/b/\n# next=2\n", '/urls ends before it');
is($t->get('/lazy/seen?url=http://a.example/')->json->{next_id}, 2,
    'next_id does not reveal it');
is($t->get('/lazy/knows?url=http://a.example/b/c')->{body}, ' ',
    'nor does a variable');
is($t->get('/lazy/knows?url=http://a.example/b/')->{body}, 'seen 1',
    '  which knows all else');
is($t->get('/lazy/prefix?url=http://a.example/x')->json->{id}, 0,
    'nor does /prefix wait');
is($t->get('/lazy/site/a.example')->json->{first}, 0, '  or /site');
cmp_ok(time - $start, '<', 0.8, 'that was answered at once');
is(answer($_)->{status}, 503, "$paths[$_] waits, a second at most")
    for 0 .. $#paths;
ok(waits('lazy'), 'as does who has added it');
$t->disk('');
is(answer('lazy')->{status}, 201, '  and is reported');
is($t->get('/lazy/seen?url=http://a.example/b/c')->json->{next_id}, 3,
    'then all are');

# --- writes that stall

$t->disk('stall 1');
fill('one');

later(mark => 'POST', '/mark/m', $marks, @text);
sleep 0.3;
later(forget => 'DELETE', "/url/7");
later(single => 'POST', '/add?url=http://single.example/x/' . 'y' x 500, '');

$r = $t->post('/seen', "$lines[0]\n", @text);
is($r->{status}, 200, 'what is durable is reported meanwhile');

for my $name (qw(add mark forget single)) {
    ok(waits($name), "$name waits");
}

$t->disk('');

$r = answer('add');
is($r->{status}, 200, 'a batch that met a full ring');
is(scalar(() = $r->{body} =~ /\tnew\t/g), 4500, '  all of it is new');
$r = answer('mark');
is($r->{status}, 200, 'marks');
is(scalar(() = $r->{body} =~ /\t(?:set|deleted)\t/g), $ids,
    '  all of them');
is(answer('forget')->{status}, 204, 'DELETE');
is(answer('single')->{status}, 201, 'a single add');
is($t->get("/url/7")->{status}, 410, 'deleted it is');
is($t->get('/urls?mark=m')->{body} =~ tr/\n//, $ids - 2,
    'and all the others are marked');

# --- refused while they wait

my $next = $t->get('/stats')->json->{next_id};

$t->disk('stall 1');
fill('two');

later(mark => 'DELETE', '/mark/m', $marks, @text);
sleep 0.3;
later(forget => 'DELETE', "/url/9");
later(quota => 'POST', '/quota', "http://q.example/1\nhttp://q.example/2\n"
    . "http://q.example/3\n", @text, 'X-Client' => 'one');

ok(waits($_), "$_ waits") for qw(add mark forget quota);

$t->disk('write 28');

for my $name (qw(add mark forget quota)) {
    $r = answer($name);
    is($r->{status}, 503, "$name is refused");
    is($r->{headers}{'content-type'}, 'application/problem+json',
        '  with a problem');
    is($r->{headers}{'retry-after'}, 1, '  for now');
    like($r->json->{detail}, qr/the disk/, '  and why');
}

is($t->post('/add', "http://later.example/\n", @text)->{status}, 503,
    'adds are refused at once now');
is($t->get('/health?write=1')->{status}, 503, 'as /health?write=1 reports');
is($t->get("/url/0")->{status}, 200, 'reads are not');

$t->disk('');
ok($t->ready(write => 1), 'the disk takes writes again');

$r = $t->post('/add', batch('two'), @text);
is($r->{status}, 200, 'the same batch again');
like($r->{body}, qr/^(?:\d+\t(?:seen|new)\t.*\n){4500}$/, '  is taken');
is($t->request('DELETE', '/mark/m', $marks, @text)->{status}, 200, 'marks');
is($t->forget("/url/9")->{status}, 204, 'DELETE');
is($t->get('/urls?mark=m')->{body}, '', 'no mark is left');
is($t->get("/url/9")->{status}, 410, 'and the URL is gone');
is(dense(), 1, 'ids are dense');
is(counted(), 1, 'all that was new is counted, answered or not');

# --- clients that leave while they wait, and a reload meanwhile

$t->disk('stall 1');
fill('three');

later(mark => 'POST', '/mark/m', $marks, @text);
later(forget => 'DELETE', '/url/20');
later(stays => 'POST', '/add', batch('four'), @text);
later(read => 'GET', '/url/999999');
sleep 0.3;

ok(waits('stays'), 'they wait');

for my $name (qw(add mark forget read)) {
    kill 'KILL', $later{$name}{pid};
    waitpid $later{$name}{pid}, 0;
}

$t->signal('HUP');
sleep 0.3;
$t->disk('');

$r = answer('stays');
is($r->{status}, 200, 'who stays is answered');
is(scalar(() = $r->{body} =~ /\tnew\t/g), 4500, '  all of it');
ok($t->ready(write => 1), 'and the service goes on');
is($t->post('/add', "http://after.example/\n", @text)->{status}, 200,
    '  as before');
is($t->request('DELETE', '/mark/m', $marks, @text)->{status}, 200, 'marks');
is(dense(), 1, 'ids are dense');

# --- ended by the server while they wait

$t->{globals} .= ' worker_shutdown_timeout 1s;';
ok($t->reload($conf), 'reloaded');

$t->disk('stall 1');
fill('five');
$t->signal('HUP');
is(eval { answer('add')->{status} }, 0, 'a batch that is not answered');

my $busy = ticks();
sleep 0.5;
cmp_ok(ticks() - $busy, '<', 15, '  the old workers wait, in peace');

$t->disk('');
ok($t->ready(write => 1), 'ready');
is(counted(), 1, '  what was new of it is counted all the same');
is(dense(), 1, '  and ids are dense');

# --- no memory for a reply in the middle of it

$t->allow(qr/mmap\(65536\) failed/);

my ($first, $more, $rest) = batch('six') =~ /^((?:.*\n){100})((?:.*\n){300})/
    ? ($1, $2, $') : die;
my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $t->port);
my $had = $t->get('/stats')->json->{next_id};

print $s "POST /add HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    . "Content-Length: " . length("$first$more$rest") . "\r\n\r\n$first";
$s->flush;
ok(wait_until(5, sub { $t->get('/stats')->json->{next_id} > $had }),
    'the store has the first of them');
$t->disk('memory 65536');
print $s $more;
$s->flush;
ok(wait_until(5, sub { $t->error_log =~ /mmap\(65536\) failed/ }),
    '  there is no memory for the answers to more');
$t->disk('');
print $s $rest;
$s->flush;

like(join('', <$s>), qr{^HTTP/1.1 500 }, 'no memory for a moment: no answer');
like($t->post('/add', batch('six'), @text)->{body},
    qr/^(?:\d+\tseen\t.*\n){20}(?:\d+\t(?:seen|new)\t.*\n){4480}$/,
    '  what had come by then was added, all the same');
is(counted(), 1, '  and counted once');

ok($t->stop, 'stopped');
$t->start;
ok($t->ready(write => 1), 'started again');
is(dense(), 1, 'they still are');
is($t->get('/urls?mark=m')->{body}, '', 'as are the marks');


# more than the ring holds, and nothing in it that compresses

sub batch
{
    my ($seed) = @_;

    my $n = 0;

    return join '', map { "$_\n" } map {
        my $line = $lines[$n++ % @lines];
        $line =~ s/[?#].*//;
        "$line?$seed=" . join '', map { substr sha1_hex("$seed $n $_"), 0, 39 }
            1 .. 4;
    } 1 .. 4500;
}


# until it is full

sub fill
{
    my ($seed) = @_;

    later(add => 'POST', '/add', batch($seed), @text);

    my $was = -1;

    ok(wait_until(5, sub {
        my $lag = $t->get('/stats')->json->{lag_bytes};
        my $same = $lag > 200_000 && $lag == $was;
        $was = $lag;
        return $same;
    }), "the ring is full: $was");
}


# a request of another process, on a connection of its own

sub later
{
    my ($name, @request) = @_;

    my $file = "$t->{dir}/answer.$name";
    unlink $file;

    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        delete $t->{client};
        my $got = $t->request(@request);
        lock_store({ %$got }, "$file.new");
        rename "$file.new", $file;
        POSIX::_exit(0);
    }

    $later{$name} = { pid => $pid, file => $file };
}


sub waits { return !-e $later{$_[0]}{file} }


sub answer
{
    my ($name) = @_;

    waitpid $later{$name}{pid}, 0;
    return bless lock_retrieve($later{$name}{file}), 'UrlStore::Answer';
}


# hundredths of a second that the workers have computed, the old ones as well

sub ticks
{
    my $sum = 0;

    for my $pid (split ' ', slurp("/proc/$t->{pid}/task/$t->{pid}/children"))
    {
        my @stat = split ' ', slurp("/proc/$pid/stat", 1) =~ s/.*\) //sr;
        $sum += $stat[11] + $stat[12] if @stat;
    }

    return $sum;
}


# whether the metrics know each id

sub counted
{
    my ($new) = $t->get('/metrics')->{body}
        =~ /^urlstore_answers_total\{zone="u",status="new"\} (\d+)$/m;

    my $next = $t->get('/stats')->json->{urls};
    diag("counted $new of $next") if $new != $next;
    return $new == $next;
}


# whether each id given has a URL, or has been deleted

sub dense
{
    my ($s, $body);

    # /urls ends before what is on its way to the disk

    wait_until(5, sub { $s = $t->get('/stats')->json;
        $s->{published} == $s->{durable} });

    my $next = $s->{next_id};
    $body = '';

    for (my $from = 0; $from < $next; $from += 10_000) {
        $body .= $t->get("/urls?deleted=1&from=$from&limit=10000")->{body};
    }

    my @ids = map { (split /\t/)[0] } split /\n/, $body;

    return "@ids" eq join(' ', 0 .. $next - 1);
}
