#!/usr/bin/perl

# Sets: made, dropped and told; what is new to them, in all formats, to one of
# many clients; ids put in and taken out; kills, retries, lists.

use strict;
use warnings;

use lib 't/lib';
use POSIX ();
use UrlStore::Corpora;
use UrlStore::Test;

my $CONF = <<'CONF';
urlstore_zone u 64m path=%%DIR%%/u marks=visited sets=4;
urlstore_zone auto 16m sets_create=auto revisit=1d;
urlstore_zone none 16m sets=0;
urlstore_zone synced 16m path=%%DIR%%/synced sync=always;
urlstore_zone doc 16m;
urlstore_filter f 1m capacity=1000 error=0.01;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /auto/ { urlstore_api auto; }
    location /trickle/ { limit_rate 100k; urlstore_api auto; }
    location /none/ { urlstore_api none; }
    location /synced/ { urlstore_api synced; }
    location /doc/ { urlstore_api doc; }
    location /f/ { urlstore_api f; }
    location /only/ { urlstore_set u; }
    location /quota/ { urlstore_quota $http_x_client 1/h; urlstore_api u; }
}
CONF

my $t = UrlStore::Test->new(workers => 2)->run($CONF);
my @text = ('Content-Type' => 'text/plain');
my @json = ('Content-Type' => 'application/json');
my ($r, $s);

my $lines = corpus('reddit_submissions', 1000);
my ($a, $b, $c) = map { "http://example.com/$_" } 'a', 'b', 'c';

$t->ready(write => 1, below => $_) for '', '/synced';


# --- made, told, dropped

sub set
{
    my ($method, $path, @h) = @_;

    return $t->request($method, $path, undef, @h);
}

sub status_is
{
    my ($method, $path, $status, $like) = @_;
    my $reply = set($method, $path);

    is($reply->{status}, $status, "$method $path");
    like($reply->{body}, $like, '  and why') if $like;

    return $reply;
}

status_is(GET => '/set/crawl-1', 404, qr/no set ."crawl-1/);
is(set(PUT => '/set/crawl-1')->{status}, 201, 'made');
is(set(PUT => '/set/crawl-1')->{status}, 200, '  once');
$s = set(GET => '/set/crawl-1')->json;
is_deeply([@$s{qw(name members asked)}], ['crawl-1', 0, 0], '  empty');
cmp_ok($s->{bytes}, '<=', 256, '  bytes of an empty set');
cmp_ok(abs($s->{created} - time), '<', 60, '  created');
is(set(HEAD => '/set/crawl-1')->{status}, 200, 'HEAD');
is(set(GET => '/only/crawl-1')->json->{name}, 'crawl-1', 'urlstore_set');

status_is(PUT => "/set/$_", 400, qr/invalid name of a set/)
    for 'a%2Fb', 'a%20', 'x' x 65, '%C3%A4', 'a!';
is(set(PUT => '/set/' . $_)->{status}, 201, "a name: $_")
    for 'x' x 64, 'A-z_0.9:a';
is(set(DELETE => '/set/' . $_)->{status}, 204, '  dropped')
    for 'x' x 64, 'A-z_0.9:a';

for ([ PUT => '/set', 'GET, HEAD' ], [ POST => '/set', 'GET, HEAD' ],
    [ PATCH => '/set/x', 'GET, HEAD, PUT, POST, DELETE' ])
{
    my ($method, $path, $allow) = @$_;

    $r = set($method, $path);
    is("$r->{status} $r->{headers}{allow}", "405 $allow", "$method $path");
}

status_is(PUT => '/set/crawl-1/7', 400);
status_is(DELETE => '/set/crawl-1/', 400);
status_is(GET => '/set/crawl-1', 200);
status_is(DELETE => '/set/visited', 409, qr/declared/);
status_is(DELETE => '/set/never', 404);
status_is(PUT => '/none/set/a', 409, qr/sets=N/);
status_is(PUT => '/f/set/a', 404);
is(set(PUT => "/set/$_")->{status}, 201, "set $_") for 2 .. 4;
status_is(PUT => '/set/5', 409, qr/has 4 sets/);
is_deeply([map { $_->{name} } @{ set(GET => '/set')->json->{sets} }],
    [qw(visited crawl-1 2 3 4)], 'all sets');
is(set(GET => '/set')->json->{most}, 4, '  and how many there may be');
is_deeply([@{ $t->get('/stats')->json }{qw(sets sets_most)}], [4, 4],
    '  figures');
like(set(GET => '/set', Accept => 'text/plain')->{body},
    qr/\Avisited\t0\t\d+\t0\t0\ncrawl-1\t0\t\d+\t\d{10}\t0\n/, '  as text');
is(scalar(split /\n/, set(GET => '/set', Accept => 'application/x-ndjson')
    ->{body}), 5, '  as NDJSON');
is(set(DELETE => '/set/4')->{status}, 204, 'room for another one');
is(set(PUT => '/set/5')->{status}, 201, '  is used');


# --- what is new to them

$t->post('/add', "$a\n", @text);
is($t->post('/add?set=crawl-1', "$a\n$b\n$a\n", @text)->{body},
    "0\tnew\t$a\n1\tnew\t$b\n0\tseen\t$a\n", 'new to the set');
is($t->post('/add?set=2&stored=1', "$a\n$c\nbad:\n$c\n", @text)->{body},
    "0\tnew\t$a\tseen\n2\tnew\t$c\tnew\n-\tinvalid\tscheme\t-\n"
    . "2\tseen\t$c\tseen\n", 'with what the store says');
is($t->post('/add?set=3&stored=1&only=new&brief=1&sites=1&summary=1',
    "$a\n$a\n$c\n", @text)->{body} =~ s/ next_id.*//r,
    "0\tnew\tsite-known\tseen\t0\n2\tnew\tsite-known\tseen\t2\n"
    . "# new=2 seen=1 unseen=0 errors=0\n", 'with all options');
is_deeply($t->post('/add?set=3', qq(["$a","$b"]), @json)->json->{results},
    [{ id => 0, status => 'seen', url => $a, stored => 'seen' },
    { id => 1, status => 'new', url => $b, stored => 'seen' }], 'JSON');
is($t->post('/add?set=3', qq({"url":"$a","ref":7}\n),
    'Content-Type' => 'application/x-ndjson')->{body},
    qq({"id":0,"status":"seen","url":"$a","stored":"seen","ref":7}\n),
    'NDJSON, with a ref');
$r = $t->post("/add?set=5&url=$c", '');
is($r->{status}, 201, 'a single one that is new to the set');
is($r->{headers}{location}, 'url/2', '  and where it is');
is_deeply([@{ $r->json }{qw(status stored)}], ['new', 'seen'], '  JSON');
is_deeply([@{ $t->get("/seen?set=5&url=$a")->json }{qw(id status stored)}],
    [0, 'unseen', 'seen'], 'not in the set, but stored: it has an id');
is_deeply([@{ $t->get("/seen?set=5&url=$a/x")->json }{qw(id status stored)}],
    [undef, 'unseen', 'unseen'], 'neither');
is($t->post('/seen?set=5&stored=1', "$c\n$a\n$a/x\n", @text)->{body},
    "2\tseen\t$c\tseen\n0\tunseen\t$a\tseen\n-\tunseen\t$a/x\tunseen\n",
    'a batch of /seen');
is(set(GET => '/set/5')->json->{members}, 1, '  which puts nothing in');
is(set(GET => '/set/5')->json->{asked}, 6, '  and is counted');

for ([ '/add?set=never', 404, qr/"reason":"set"/ ],
    [ '/seen?set=never', 404, qr/never/ ], [ '/add?set=', 400, qr/invalid/ ],
    [ '/add?stored=1', 400, qr/without .*set/ ],
    [ '/auto/add?set=a&older=1d', 400, qr/"set.*older/ ],
    [ '/auto/seen?set=a&times=1', 400, qr/"set.*times/ ],
    [ '/f/add?set=a', 400, qr/filter/ ])
{
    $r = $t->post($_->[0], "$a\n", @text);
    is($r->{status}, $_->[1], "POST $_->[0]");
    like($r->{body}, $_->[2], '  and why');
}

is($t->get("/urls?set=$_->[0]")->{body}, $_->[1], "URLs of $_->[0]")
    for [ 5 => "2\t$c\n" ], [ '!5' => "0\t$a\n1\t$b\n" ], [ visited => '' ];
is($t->get('/urls?set=crawl-1&from=1&limit=1')->{body}, "1\t$b\n", 'a cursor');
status_is(GET => '/urls?set=never', 404);
status_is(GET => '/urls?set=5&mark=visited', 400, qr/"set.*and.*mark/);


# --- ids

is($t->post('/set/5?summary=1', "0\n0\n2\n$b\n$a/x\n99\n", @text)->{body}
    =~ s/ next_id.*//r, "0\tin\t$a\n0\twas\t$a\n2\twas\t$c\n1\tin\t$b\n"
    . "-\tunknown\t$a/x\n-\tunknown\t-\n# in=2 was=2 out=0 unseen=0 "
    . "unknown=2 deleted=0 errors=0\n", 'put in, once');
is($t->post('/set/5?remove=1', "0\n0\n", @text)->{body},
    "0\tout\t$a\n0\tunseen\t$a\n", 'taken out');
is_deeply([@{ set(DELETE => '/set/5/1')->json }{qw(id status)}], [1, 'out'],
    'one of them');
is(set(DELETE => '/set/5/1')->json->{status}, 'unseen', '  once');
status_is(DELETE => '/set/5/01', 422);
status_is(DELETE => '/set/5/1?remove=1', 400);
is($t->post('/mark/5?id=1')->json->{status}, 'set', '/mark is another word');
is($t->get('/urls?mark=5')->{body}, "1\t$b\n2\t$c\n", '  so is mark=');
is(set(DELETE => '/mark/5?id=1')->json->{status}, 'clear', '  takes out');
is_deeply([@{ set(DELETE => '/mark/5/2')->json }{qw(id status)}], [2, 'clear'],
    '  by its path, too');
$t->post('/set/5', "2\n", @text);
status_is(POST => '/mark', 400, qr/invalid name/);
is($t->request(DELETE => '/set/5', "2\n", @text)->{status}, 400,
    'DELETE of a set, with a body');
is(set(GET => '/set/5')->json->{members}, 1, '  drops nothing');
is($t->post('/set/visited?id=0')->json->{status}, 'in', 'a mark is a set');
is($t->post('/add?set=visited', "$a\n$b\n", @text)->{body},
    "0\tseen\t$a\n1\tnew\t$b\n", '  in all');


# --- a batch in which a member follows what is none, and lies between

my @gap = map { "$a/gap/$_" } 0 .. 3;

$t->post('/add', join("\n", @gap), @text);
$t->post('/set/2', "$gap[2]\n", @text);
is($t->post('/add?set=2', join("\n", @gap[0, 2, 1, 3, 2]), @text)->{body}
    =~ s/^\d+\t(\w+)\t\S+/$1/gmr, "new\nseen\nnew\nnew\nseen\n",
    'one of a run');
unlike($t->post('/add?set=2', join("\n", @gap[3, 0, 1, 2]), @text)->{body},
    qr/\tnew\t/, '  then all of it');


# --- a URL that is deleted is counted, and in no answer

$t->post('/add?set=2', "$a/gone\n", @text);
my ($gone) = $t->post('/seen?set=2', "$a/gone\n", @text)->{body} =~ /^(\d+)/;
my $members = set(GET => '/set/2')->json->{members};

$t->forget("/url/$gone");
is(set(GET => '/set/2')->json->{members}, $members, 'deleted: a member');
unlike($t->get('/urls?set=2')->{body}, qr/^$gone\t/m, '  in no list');
is($t->post("/set/2$_", "$gone\n", @text)->{body}, "$gone\tdeleted\t-\n",
    '  known as deleted') for '', '?remove=1';
is($t->post('/add?set=2', "$a/gone\n", @text)->{body} =~ s/^\d+//r,
    "\tnew\t$a/gone\n", '  new again, with another id');
is(set(GET => '/set/2')->json->{members}, ++$members, '  which is another one');


# --- a set that was dropped, and one that is made by its use

is(set(DELETE => '/set/5')->{status}, 204, 'dropped');
is(set(PUT => '/set/5')->{status}, 201, '  made again');
is($t->get('/urls?set=5')->{body}, '', '  has nothing of before');
is($t->post("/add?set=5", "$c\n", @text)->{body}, "2\tnew\t$c\n",
    "  new again");

is($t->post('/auto/seen?set=a&stored=1', "$a\n", @text)->{body},
    "-\tunseen\t$a\tunseen\n", 'sets_create=auto: none is empty');
is($t->get('/auto/urls?set=a')->{body}, '', '  for a list, too');
status_is(GET => '/auto/set/a', 404);
status_is(DELETE => '/auto/set/a/0', 404);
is($t->post('/auto/add?set=a', "$a\n", @text)->{body}, "0\tnew\t$a\n",
    '  /add makes it');
is($t->post('/auto/set/b', "0\n", @text)->{body}, "0\tin\t$a\n",
    '  so does /set');

# while a body comes: the old one is gone, and a new one takes its place

for (qw(/add /seen /set)) {
    my $c = $t->client;

    my $before = $t->get('/auto/stats')->json->{body_bytes};

    set(PUT => '/auto/set/slow');
    $c->begin(POST => '/auto' . ($_ eq '/set' ? '/set/slow' : "$_?set=slow"),
        @text);
    $c->piece("$a\n" x 300);
    ok(UrlStore::Test::wait_until(10, sub {
        $t->get('/auto/stats')->json->{body_bytes} - $before
            == 300 * length "$a\n"
    }), 'the first part has come');
    is(set(DELETE => '/auto/set/slow')->{status}, 204, '  a drop');
    is(set(PUT => '/auto/set/slow')->{status}, 201, '  another set');
    $t->post('/auto/add?set=slow', "$a\n", @text);
    $c->piece("$a\n" x 300);
    $r = $c->end;
    is($r->{status}, 404, "  POST $_");
    is($r->json->{reason}, 'set', '  why');
    cmp_ok($r->json->{processed}, '<=', 300, '  and what was done before');
}

# while a list is sent: it is cut, so that no URL of it is taken for another's

$t->post('/auto/add?set=slow', join("\n", @{ corpus('reddit_submissions',
    5000) }), @text);

for (qw(slow !slow)) {
    my $c = $t->client;

    set(PUT => '/auto/set/slow');
    $c->begin(GET => "/trickle/urls?limit=9999&set=$_");
    ok(UrlStore::Test::wait_until(10, sub { $c->_fill }), "a list of $_");
    is(set(DELETE => '/auto/set/slow')->{status}, 204, '  a drop');
    is($c->_read('GET'), undef, '  it has no end');
}

# before it begins: by a process that does nothing else, over connections that
# another worker takes sooner or later, while this one looks for what no URL
# begins with, which takes a millisecond or more

{
    my $dropper = fork() // die;
    my $end = time + 30;
    my (%status, %reason);

    if ($dropper == 0) {
        for (my $i = 0; time <= $end; $i++) {
            delete $t->{client} if $i % 20 == 0;
            $t->request(PUT => '/auto/set/brief');
            $t->request(DELETE => '/auto/set/brief');
        }

        POSIX::_exit(0);
    }

    while (time <= $end && ($status{404} // 0) < 3 && !$status{500}) {
        $r = $t->get('/auto/urls?limit=9999&set=!brief&prefix=http://!/');
        $status{$r->{status}}++ if $r->{status};    # else it is cut
        $reason{$r->json->{reason}}++ if $r->{status} == 404;
    }

    kill 'KILL', $dropper;
    waitpid $dropper, 0;
    is(join(' ', grep { $_ != 200 } sort keys %status), '404',
        'a set that comes and goes');
    is(join(' ', keys %reason), 'set', '  why');
}



# --- a retry, a quota

my @key = ('Idempotency-Key' => '"first"');

$r = $t->post('/add?set=5', "$a\n$b\n$a\n", @text, @key);
is($r->{body}, "0\tnew\t$a\n1\tnew\t$b\n0\tseen\t$a\n", 'with a key');
is($r->{headers}{'idempotency-status'}, 'repeated', '  it is remembered');
is($t->post('/add?set=5', "$a\n$b\n$a\n", @text, @key)->{body}, $r->{body},
    '  a retry');
is($t->post('/add?set=5', "$a\n", @text)->{body}, "0\tseen\t$a\n",
    '  without the key');
is($t->post('/add?set=2', "$b\n", @text, @key)->{body}, "1\tnew\t$b\n",
    '  another set');
$r = $t->post('/set/3?remove=1', "0\n", @text);
is($t->post('/set/3', "0\n0\n", @text, @key)->{body},
    "0\tin\t$a\n0\twas\t$a\n", '  ids') for 1, 2;

my @client = ('X-Client' => 'q');

is($t->post('/quota/add?set=5', join("\n", map { "$a/$_" } 1 .. 9), @text,
    @client)->{status}, 200, 'a quota');
is($t->post('/quota/add?set=5', "$a\n", @text, @client)->{status}, 429,
    '  is charged');
@client = ('X-Client' => 'other');
is($t->post('/quota/add?set=2', join("\n", map { "$a/$_" } 1 .. 9), @text,
    @client)->{body} =~ tr/\n//, 9, '  of what is stored');
is($t->post('/quota/add?set=5', "$a\n", @text, @client)->{status}, 200,
    '  nothing is charged');


# --- clients at the same time, each with the links in an order of its own

set(DELETE => '/set/3');
set(PUT => '/set/3');
my %new;
my @pipes;

for my $client (0 .. 3) {
    pipe my $in, my $out or die;
    my $pid = fork // die;

    if ($pid == 0) {
        my @mine = $client % 2 ? reverse @$lines : @$lines;

        for my $i (0 .. 9) {
            my $body = join '', map { "$_\n" } @mine[$i * 100 .. $i * 100 + 99];
            print $out $t->client->request('POST', '/add?set=3', $body,
                @text)->{body};
        }

        close $out;
        POSIX::_exit(0);
    }

    close $out;
    push @pipes, [ $pid, $in ];
}

for (@pipes) {
    my ($pid, $in) = @$_;

    while (<$in>) {
        $new{$1}++ if /^(\d+)\tnew\t/;
    }

    waitpid $pid, 0;
}

my %members = map { /^(\d+)/ ? ($1 => 1) : () }
    split /\n/, $t->get('/urls?set=3&limit=100000')->{body};

cmp_ok(scalar keys %new, '>', 900, 'links of several clients');
is_deeply([grep { $_ != 1 } values %new], [], '  each is new to one of them');
is_deeply(\%new, \%members, '  and those are the set');


# --- a kill, a reload, sync=always

my $count = set(GET => '/set/2')->json->{members};

is(set(PUT => '/synced/set/s')->{status}, 201, 'sync=always: made');
is($t->post('/synced/add?set=s', "$a\n", @text)->{status}, 200, '  an add');

$t->kill_all;
$t->run($CONF);
$t->ready(write => 1, below => $_) for '', '/synced';

my %after = map { /^(\d+)/ ? ($1 => 1) : () }
    split /\n/, $t->get('/urls?set=3&limit=100000')->{body};

is_deeply(\%after, \%members, 'a kill: all members are there');
is(set(GET => '/set/2')->json->{members}, $count, '  deleted ones, too');
is($t->post('/synced/add?set=s', "$a\n", @text)->{body}, "0\tseen\t$a\n",
    '  of sync=always, too');
is($t->post('/add?set=3', join("\n", @$lines), @text)->{body}
    =~ /\tnew\t/ ? 'new' : 'none', 'none', '  nothing is new twice');

spew($t->dir . '/nginx.conf', $t->expand(slurp($t->dir . '/nginx.conf')
    =~ s/marks=visited sets=4/marks=visited,5 sets=2/r));
ok($t->reload, 'a reload with fewer sets, and one that is a mark now');
ok(UrlStore::Test::wait_until(10,
    sub { set(DELETE => '/set/5')->{status} == 409 }), '  which is kept');
is(scalar @{ set(GET => '/set')->json->{sets} }, 5, '  leaves those there are');
status_is(PUT => '/set/6', 409, qr/allowed no more/);
is(set(PUT => '/set/5')->{status}, 200, '  one of them');


# --- docs/sets.md

my ($doc) = slurp("$UrlStore::Test::TOP/docs/sets.md");
my $store = 'http://127.0.0.1:' . $t->port . '/doc';
my $script = join '', "store=$store\n", $doc =~ /^```sh\n(.*?)^```$/msg;
my $shown = join '', map { "$_\n" } $doc =~ /^    (?!\w+\(\))(\S.*)$/mg;
my $wants = join '', grep { /^(?:\{|\d|site-)/ } split /^/,
    join '', map { "$_\n" } $doc =~ /^    (.*)$/mg;
my $got = do {
    local $ENV{PATH} = $ENV{PATH};
    open my $sh, '-|', 'bash', '-c', $script or die;
    local $/;
    <$sh>;
};

s/17\d{8}/TIME/g for $wants, $got;
s/(TIME\t|"asked":)\d+/$1N/g, s/"bytes":\d+|\t\d+\tTIME/BYTES/g
    for $wants, $got;
is($got, $wants, 'docs/sets.md: two crawls of one site');

done_testing;
