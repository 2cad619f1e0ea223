#!/usr/bin/perl

# Scrapy with the duplicate filter and the middleware of clients/python, on a
# site of stored pages.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep time);
use UrlStore::Fake;
use UrlStore::Site;
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;
my $pages = full() ? 2000 : 200;
my @scrapy = ('/usr/bin/python3', '-B', '-m', 'scrapy', 'runspider',
    "$top/clients/python/examples/links.py");

my $site = UrlStore::Site->new($pages);
my $dir = $site->dir;


# starts a crawler: its pid

sub crawl
{
    my ($name, $port, %o) = @_;

    my $pid = fork() // die "fork: $!";

    return $pid if $pid;

    open STDIN, '<', '/dev/null';
    open STDOUT, '>>', "$dir/$name.out";
    open STDERR, '>>', "$dir/$name.out";

    $ENV{PYTHONPATH} = "$top/clients/python";
    $ENV{http_proxy} = $site->proxy;
    $ENV{no_proxy} = '';
    chdir $dir;

    my $start = delete $o{start} // $site->urls->[0];
    my %s = (URLSTORE_URL => "http://127.0.0.1:$port", USER_AGENT => $name,
        LOG_LEVEL => 'INFO', CONCURRENT_REQUESTS_PER_DOMAIN => 16, %o);

    exec @scrapy, '-a', "start=$start", map { ('-s', "$_=$s{$_}") } sort keys %s
        or POSIX::_exit(127);
}


sub ends
{
    my ($pid) = @_;

    waitpid $pid, 0;
    return $? == 0;
}


sub sum
{
    my ($n, %of) = (0, @_);
    $n += $_ for values %of;
    return $n;
}


# The pages of a store without the mark.  The store may have been started just
# now, and answers 503 until it is loaded.

sub left
{
    my ($t, $below) = @_;

    $t->ready(below => $below);
    my $r = $t->get("$below/urls?mark=!visited&limit=10000");

    return $r->{status} == 200 ? $r->{body} : "$r->{status}: $r->{body}";
}


sub show_log { diag(substr slurp("$dir/$_[0].out", 1), -2000) }


# --- one after the other, and at the same time ----------------------------

my $conf = join '', map { "urlstore_zone $_ 16m marks=visited;\n" }
    qw(one two1 two2 two3 two4 three four five six seven eight nine);
my $t = UrlStore::Test->new->run(<<CONF);
$conf
server {
    listen 127.0.0.1:%%PORT%%;
    location /one/ { urlstore_api one; }
    location /two1/ { urlstore_api two1; }
    location /two2/ { urlstore_api two2; }
    location /two3/ { urlstore_api two3; }
    location /two4/ { urlstore_api two4; }
    location /three/ { urlstore_api three; }
    location /five/ { urlstore_api five; }
    location /six/ { urlstore_api six; }
    location /seven/ { urlstore_api seven; }
    location /eight/ { urlstore_api eight; }
    location /nine/ { urlstore_api nine; }
    location /four/ {
        if (-f %%DIR%%/busy) { return 503; }
        error_page 503 \@busy;
        urlstore_api four;
    }
    location \@busy {
        add_header Retry-After 1 always;
        return 503;
    }
}
CONF
my $store = $t->port;

ok(ends(crawl('first', "$store/one")), 'a crawler') or show_log('first');
my $got = $site->fetched;
is(sum(%{ $got->{all} }), $pages, '... fetches each page')
    or show_log('first');
is(scalar $site->missing($got->{all}), 0, '... each once');
is(left($t, '/one'), '', '... and all are marked');
unlike(slurp("$dir/first.out"), qr/Traceback|ValueError/,
    '... whatever links they have');
like(slurp("$dir/first.out"), qr{'urlstore/invalid': \d}, '... of which some '
    . 'are no URLs that the store can hold');

ok(ends(crawl('second', "$store/one")), 'a second one, later');
$got = $site->fetched;
is(sum(%{ $got->{all} // {} }), 0, '... fetches nothing of the first');
like(slurp("$dir/second.out"),
    qr/is in the store, so it .*URLSTORE_START=0 .*URLSTORE_RESUME=1 /,
    '... and says why');

ok(ends(crawl('unmarked', "$store/six", URLSTORE_MARK => 'nope')),
    'a crawler whose mark the store does not have');
$got = $site->fetched;
is(sum(%{ $got->{all} // {} }), $pages, '... fetches all pages');
is(scalar(() = slurp("$dir/unmarked.out") =~ /pages are not marked/g), 1,
    '... and says once that they are not marked');


# what scrapy-redis' scheduler calls, in its order

spew("$dir/redis.py", <<'END');
import sys
from scrapy import Request, Spider
from scrapy.utils.misc import load_object
from scrapy.utils.test import get_crawler

class S(Spider):
    name = "s"

def run(*links, flush=False):
    crawler = get_crawler(S, {"URLSTORE_URL": sys.argv[1], **settings})
    spider = S.from_crawler(crawler)
    df = load_object("urlstore.scrapy.DupeFilter").from_spider(spider)
    if flush:                   # SCHEDULER_FLUSH_ON_START
        df.clear()
    for link in links:
        request = Request(link)
        seen = df.request_seen(request)
        if seen:
            df.log(request, spider)
        print("seen" if seen else "new")
    if not flush:
        df.clear()              # close() without SCHEDULER_PERSIST

settings = dict(arg.split("=") for arg in sys.argv[2:])
run("http://redis.test/a", "http://redis.test/b", "http://REDIS.test/a")
run("http://redis.test/a", "http://redis.test/c")
if "URLSTORE_SET" in settings:
    run("http://redis.test/a", flush=True)
    run("http://redis.test/a", flush=True)
END

my $redis = "PYTHONPATH=$top/clients/python /usr/bin/python3 -B $dir/redis.py"
    . " http://127.0.0.1:$store/seven";

is(`$redis`, "new\nnew\nseen\nseen\nnew\n",
    'the scheduler of scrapy-redis: the store filters, and keeps its URLs');
is(`$redis 'URLSTORE_SET=all:%(name)s'`, "new\nnew\nseen\nnew\nnew\n"
    . "new\nnew\n", '... with a set, which it drops at the end, or makes anew '
    . 'at the start');
is(join(' ', map { "$_->{name}=$_->{members}" }
    @{ $t->get('/seven/set')->json->{sets} }), 'visited=0 all:s=1 all:s.done=0',
    '... and no other');
like(`$redis URLSTORE_SET=s URLSTORE_OLDER=1d 2>&1`,
    qr/^ValueError: URLSTORE_SET with URLSTORE_OLDER/m,
    '... a set has no times');
like(`$redis URLSTORE_SET=a/b 2>&1`,
    qr/^urlstore.errors.Problem: PUT .*: 400 .* name of a set/m,
    '... nor any name');

# --- what was erased --------------------------------------------------------

# the last pages lead to no other that nothing else leads to

my @gone = map { $pages - $_ } 1, 7, 20;
my $erased = join '', map { $site->urls->[$_] . "\n" } @gone;

is($t->post('/nine/erase', "${erased}http://redis.test/c\n")->{status}, 202,
    'pages are erased');
ok(ends(crawl('erased', "$store/nine")), '... then a crawler')
    or show_log('erased');
$got = $site->fetched->{all};
is(join(' ', sort { $a <=> $b } $site->missing($got)),
    join(' ', sort { $a <=> $b } @gone), '... fetches all others')
    or show_log('erased');
is(left($t, '/nine'), '', '... and marks them');
like(slurp("$dir/erased.out"), qr{'urlstore/refused': [1-9]},
    '... it counts what was refused');

for my $always (0, 1) {
    ok(ends(crawl("start$always", "$store/nine", URLSTORE_START => 1 - $always,
        start => $site->urls->[$gone[0]])), 'one that begins with such a page')
        or show_log("start$always");
    is($site->requests, 0, '... fetches nothing'
        . ($always ? ', with URLSTORE_START=0 either' : ''));
    like(slurp("$dir/start$always.out"), qr/start URL was erased/,
        '... and says why');
}

my $nine = $redis =~ s{/seven$}{/nine}r;

is(`$nine`, "new\nnew\nseen\nseen\nseen\n",
    'the filter alone lets no erased URL through');


# they may miss each other: then once more

my ($both, $two);

for my $try (1 .. 4) {
    $two = "two$try";

    my @pids = (crawl('a', "$store/$two", DOWNLOAD_DELAY => .01),
        crawl('b', "$store/$two", DOWNLOAD_DELAY => .01,
            start => $site->urls->[-1]));

    $both = grep { ends($_) } @pids;
    $got = $site->fetched;
    last if $got->{a} && $got->{b};
}

is($both, 2, 'two crawlers at the same time');
ok($got->{a} && $got->{b}, '... share the work');
is(sum(%{ $got->{all} }), $pages, '... fetch each page once');
is(scalar $site->missing($got->{all}), 0, '... all of them');
is(left($t, "/$two"), '', '... all are marked');
note('they fetched ' . join(' and ',
    map { sum(%{ $got->{$_} // {} }) } qw(a b)));


# --- kill -9 of the crawler -------------------------------------------------

my ($kills, $all) = (0, {});


# the pages of /three with the mark

sub marked
{
    return map { (split /\t/)[1] } split /\n/,
        $t->get('/three/urls?mark=visited&limit=10000')->{body};
}


# kills a crawler of /three when so many pages were fetched, and some marked

sub kill_crawler
{
    my ($port, $after, @options) = @_;

    my $before = marked();
    my $pid = crawl('killed', $port, @options);

    wait_until(30, sub { $site->requests >= $after });
    wait_until(30, sub { marked() > $before });
    kill 'KILL', $pid;
    ends($pid);
    $kills++;
    $got = $site->fetched;
    $all->{$_} += $got->{all}{$_} for keys %{ $got->{all} // {} };
}


# the first one marks pages, and cannot store their links

my $stuck = UrlStore::Fake->new(sub {
    my ($name, $n, $target) = @_;
    return $n > 6 && $target =~ m{/add} ? { status => 503 }
        : { forward => $store };
});

kill_crawler($stuck->port . '/x/y/three', 4);

my @marked = marked();

ok(@marked && @marked < $pages, 'a crawler that can store no more links marks '
    . 'some pages');
unlike($t->post('/three/seen', join('', map { "$_\n" }
    map { $site->links($_) } @marked))->{body}, qr/\tunseen\t/,
    '... whose links are stored');

kill_crawler("$store/three", $_, URLSTORE_RESUME => 1,
    DOWNLOAD_DELAY => .02, CONCURRENT_REQUESTS => 4) for 10, 30;

my $before = keys %$all;
ok(ends(crawl('resumed', "$store/three", URLSTORE_RESUME => 1)),
    "a crawler after $kills kills");
$got = $site->fetched;
$all->{$_} += $got->{all}{$_} for keys %{ $got->{all} // {} };
is(join(' ', $site->missing($all)), '', '... fetches every page that was left')
    or show_log('resumed');
is(left($t, '/three'), '', '... and all are marked');
note("$before of $pages pages before the last run, "
    . (sum(%$all) - $pages) . ' fetched again');


# --- sets -------------------------------------------------------------------

for my $set (qw(monday friday)) {
    ok(ends(crawl($set, "$store/eight", URLSTORE_SET => "%(name)s-$set")),
        "a crawl with a set: $set") or show_log($set);
    $got = $site->fetched;
    is(join(' ', $site->missing($got->{all})), '', '... fetches every page');
    is(sum(%{ $got->{all} }), $pages, '... once');
}

is(scalar(() = $t->get('/eight/urls?limit=10000')->{body} =~ /^\d/mg), $pages,
    '... the second stores nothing again');
ok(ends(crawl('again', "$store/eight", URLSTORE_SET => 'links-monday')),
    'the first one again');
is(sum(%{ $site->fetched->{all} // {} }), 0, '... fetches nothing');
like(slurp("$dir/again.out"), qr/is in the set links-monday, so it .*again/,
    '... and says why');


# URLs of a set

sub members
{
    my ($set) = @_;

    return map { (split /\t/)[1] } split /\n/,
        $t->get("/eight/urls?set=$set&limit=10000")->{body};
}

# a page of another crawl, and what was done in a dropped set of the name

my @plain = ('Content-Type' => 'text/plain');

$t->post('/eight/add', "http://other.test/\n", @plain);
$t->request('PUT', '/eight/set/killed.done');
$t->post('/eight/set/killed.done', join('', map { "$_\n" }
    @{ $site->urls }[100 .. 150]), @plain);
is(scalar members('killed.done'), 51, 'a set of before');

my @set = (URLSTORE_SET => 'killed', DOWNLOAD_DELAY => .02,
    CONCURRENT_REQUESTS => 4);
my $killed = crawl('killed', "$store/eight", @set);

wait_until(30, sub {
    $site->requests >= 30 && members('killed.done') >= 10
});
kill 'KILL', $killed;
ends($killed);
$all = $site->fetched->{all};

my @done = $site->numbers(members('killed.done'));

ok(@done && @done < $pages, 'a crawler that is killed has done some pages');
ok(ends(crawl('rest', "$store/eight", URLSTORE_SET => 'killed',
    URLSTORE_RESUME => 1)), '... the next one') or show_log('rest');
$got = $site->fetched->{all};
is(scalar(grep { $got->{$_} } @done), 0, '... fetches none of them');
$got->{$_} += $all->{$_} for keys %$all;
is(join(' ', $site->missing($got)), '', '... but every page that was left')
    or show_log('rest');
unlike(slurp("$dir/rest.out"), qr/other\.test/, '... none of another crawl');
is(scalar members('killed.done'), $pages, '... and all are done');


# --- the service is busy, and restarts --------------------------------------

my $pid = crawl('busy', "$store/four", DOWNLOAD_DELAY => .005);
my $busy = 0;

for my $n (1 .. 60) {
    last if waitpid($pid, POSIX::WNOHANG()) == $pid && ($pid = 0, 1);

    if ($n % 3 == 2) {
        spew("$t->{dir}/busy", '');
        $busy++;

    } else {
        unlink "$t->{dir}/busy";
    }

    sleep .4;
}

unlink "$t->{dir}/busy";
ends($pid) if $pid;
$got = $site->fetched;
is(sum(%{ $got->{all} }), $pages,
    "a crawler whose store is busy $busy times fetches each page once")
    or show_log('busy');
is(scalar $site->missing($got->{all}), 0, '... all of them');
is(left($t, '/four'), '', '... and all are marked');

# each third answer is lost after the store has done what it was asked for

my $fake = UrlStore::Fake->new(sub {
    my ($name, $n) = @_;
    return { forward => $store, $n % 3 == 2 ? (drop => 'sent') : () };
});

ends(crawl('lost', $fake->port . '/x/y/five'));
$got = $site->fetched;
is(join(' ', $site->missing($got->{all})), '',
    'a crawler that loses each third answer of its store loses no page')
    or show_log('lost');
is(left($t, '/five'), '', '... all are marked');
note('fetched again: ' . (sum(%{ $got->{all} }) - $pages));

my $d = UrlStore::Test->new->allow_kills->run(<<'CONF');
urlstore_zone disk 16m path=%%DIR%%/disk sync=always marks=visited;
urlstore_zone claims 16m marks=visited revisit=1h;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api disk; }
    location /claims/ { urlstore_api claims; }
}
CONF

my $restarts = 0;
$pid = crawl('restarted', $d->port, DOWNLOAD_DELAY => .01);
sleep 1.5;

for (1 .. 6) {
    sleep .3 + rand .4;
    last if waitpid($pid, POSIX::WNOHANG()) == $pid && ($pid = 0, 1);
    $d->kill_all;
    sleep .1;
    $d->start;
    $restarts++;
}

ends($pid) if $pid;
$got = $site->fetched;
is(join(' ', $site->missing($got->{all})), '',
    "a crawler whose store is killed and started $restarts times loses no"
    . ' page') or show_log('restarted');
is(left($d, ''), '', '... all are marked') or show_log('restarted');
note('fetched again: ' . (sum(%{ $got->{all} }) - $pages));


# --- claims: leases with a model, whose claims have units of a second ---------

our $model_port;       # closed after END, which ends the model

my $model = open($model_port, '-|', '/usr/bin/python3', '-B',
    "$top/clients/python/test/claims.py") // die "claims.py: $!";
chomp(my $leases = <$model_port>);

END {
    local $?;
    kill 'TERM', $model;
}

my @lease = (URLSTORE_LEASE => '3s', DOWNLOAD_DELAY => .01,
    CONCURRENT_REQUESTS => 4);
my $a = crawl('a', $leases, @lease);
my $b = crawl('b', $leases, @lease, start => $site->urls->[-1]);

wait_until(20, sub { $site->requests >= 40 });
kill 'KILL', $a;
ends($a);
ok(ends($b), 'of two crawlers with a lease, one is killed') or show_log('b');
$got = $site->fetched;
is(join(' ', $site->missing($got->{all})), '',
    '... the other fetches what is left') or show_log('b');
note('they fetched ' . join(' and ',
    map { sum(%{ $got->{$_} // {} }) } qw(a b)) . ' of ' . $pages);

# --- claims of the service

my $claims = $d->port . '/claims';

ok(ends(crawl('first', $claims, URLSTORE_OLDER => '30d')), 'all pages are new');
is(keys %{ $site->fetched->{all} }, $pages, '... and fetched');
ok(ends(crawl('none', $claims, URLSTORE_OLDER => '30d')), 'nothing is due');
is(sum(%{ $site->fetched->{all} }), 0, '... and nothing is fetched');

claim_back(0, 1);
ok(ends(crawl('due', $claims, URLSTORE_OLDER => '30d')), 'two pages are due');
is(sum(%{ $site->fetched->{all} }), 2, '... and fetched');


# makes the first pages of the site due, by their numbers in the store

sub claim_back
{
    my @h = ('Content-Type' => 'application/json');
    my $answer = $d->post('/claims/seen', JSON::PP->new->encode(
        { urls => [@{ $site->urls }[@_]] }), @h)->json;

    $d->post('/claims/claim?clear=1', JSON::PP->new->encode(
        [ map { $_->{id} } @{ $answer->{results} } ]), @h);
}
