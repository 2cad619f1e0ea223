#!/usr/bin/perl

# Scrapy with the duplicate filter and the middleware of clients/python, on a
# site of stored pages: their URLs are those of a list of real links, their
# links the ones that follow in it, and nginx is the proxy that serves them.
# An URL that has a page only with www., or only without, redirects there.
#
# What was fetched is what nginx logged.

use strict;
use warnings;

use lib 't/lib';
use File::Path qw(make_path);
use Time::HiRes qw(sleep time);
use UrlStore::Fake;
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;
my $pages = full() ? 3000 : 300;
my @scrapy = ('/usr/bin/python3', '-B', '-m', 'scrapy', 'runspider',
    "$top/clients/python/examples/links.py");

# the site, and a store that says which spellings are one page

my $site = UrlStore::Test->new->run(<<'CONF');
log_format crawl '$http_user_agent $status $scheme://$host$request_uri';
urlstore_zone pages 16m;
map $host $moved {
    ~^www\.(?<bare>.*) $bare;
    default www.$host;
}
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api pages; }
}
server {
    listen 127.0.0.1:%%PORT1%%;
    access_log %%DIR%%/crawl.log crawl;
    root %%DIR%%/pages;
    default_type text/html;
    location / {
        try_files "/$host$request_uri.page" @moved;
    }
    location @moved {
        if (-f "$document_root/$moved$request_uri.page") {
            return 301 http://$moved$request_uri;
        }
        return 404;
    }
}
CONF

my @urls = make_pages();

is(scalar @urls, $pages, "a site of $pages pages");


# Takes the first URLs of a list whose path is a file name as well; each page
# links to what follows in the list, and to two others, so that all can be
# reached.

sub make_pages
{
    my (%url, @urls, @order);

    for my $url (@{ corpus('html_forms_forums_shops_pages', 40_000) }) {
        next if $url !~ m{^http://[\w.-]+/[\w./?=&;+-]*$}
            || $url =~ m{//.*//|/\.|\.\./} || length $url > 200;

        if (!exists $url{$url}) {
            last if @urls == $pages;

            my ($id, $status) = split /\t/,
                $site->post('/add', "$url\n")->{body};
            $url{$url} = $urls[$id] // $url;
            push @urls, $url if $status eq 'new';
        }

        push @order, $url;
    }

    my $at = 0;

    for my $i (0 .. $#urls) {
        my @links = map { $order[($at + $_) % @order] } 0 .. 19;

        push @links, map { $urls[$_] } grep { $_ < @urls }
            2 * $i + 1, 2 * $i + 2;

        $at += 13;
        write_page($urls[$i], @links);
    }

    return @urls;
}


sub write_page
{
    my ($url, @links) = @_;

    my ($host, $path) = $url =~ m{^http://([^/]+)(/.*)};
    my ($dir) = "$host$path" =~ m{^(.*)/};
    my $file = "$site->{dir}/pages/$host$path";

    make_path("$site->{dir}/pages/$dir");
    spew("$file.page", "<html><head><title>$host</title></head><body>"
        . join('', map { '<a href="' . s/&/&amp;/gr . "\">link</a>\n" }
            @links) . '</body></html>');
}


# starts a crawler: its pid

sub crawl
{
    my ($name, $port, %o) = @_;

    my $pid = fork() // die "fork: $!";

    return $pid if $pid;

    open STDIN, '<', '/dev/null';
    open STDOUT, '>>', "$site->{dir}/$name.out";
    open STDERR, '>>', "$site->{dir}/$name.out";

    $ENV{PYTHONPATH} = "$top/clients/python";
    $ENV{http_proxy} = 'http://127.0.0.1:' . $site->port(1);
    $ENV{no_proxy} = '';
    chdir $site->{dir};

    my $start = delete $o{start} // $urls[0];
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


# what was fetched since the last call: by the name of the crawler, the number
# of the page -> how often

sub fetched
{
    my $log = "$site->{dir}/crawl.log";
    my %got;

    for my $line (split /\n/, slurp($log, 1)) {
        my ($name, $status, $url) = split / /, $line;

        next if $status != 200;

        my ($id) = split /\t/, $site->post('/seen', "$url\n")->{body};
        $got{$name}{$id}++;
        $got{all}{$id}++;
    }

    truncate $log, 0 or die "truncate: $!";
    return \%got;
}


sub sum
{
    my ($n, %of) = (0, @_);
    $n += $_ for values %of;
    return $n;
}


sub missing { my ($got) = @_; return grep { !$got->{$_} } 0 .. $#urls }


# the pages of a store without the mark

sub left
{
    my ($t, $below) = @_;

    return $t->get("$below/urls?mark=!visited&limit=10000")->{body};
}


sub show_log { diag(substr slurp("$site->{dir}/$_[0].out", 1), -2000) }


# --- one after the other, and at the same time ----------------------------

my $conf = join '', map { "urlstore_zone $_ 16m marks=visited;\n" }
    qw(one two1 two2 two3 two4 three four five);
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
my $got = fetched();
is(sum(%{ $got->{all} }), $pages, '... fetches each page')
    or show_log('first');
is(scalar missing($got->{all}), 0, '... each once');
is(left($t, '/one'), '', '... and all are marked');

ok(ends(crawl('second', "$store/one")), 'a second one, later');
$got = fetched();
is(sum(%{ $got->{all} // {} }), 0, '... fetches nothing of the first');

# they may miss each other: then once more

my ($both, $two);

for my $try (1 .. 4) {
    $two = "two$try";

    my @pids = (crawl('a', "$store/$two", DOWNLOAD_DELAY => .01),
        crawl('b', "$store/$two", DOWNLOAD_DELAY => .01,
            start => $urls[-1]));

    $both = grep { ends($_) } @pids;
    $got = fetched();
    last if $got->{a} && $got->{b};
}

is($both, 2, 'two crawlers at the same time');
ok($got->{a} && $got->{b}, '... share the work');
is(sum(%{ $got->{all} }), $pages, '... fetch each page once');
is(scalar missing($got->{all}), 0, '... all of them');
is(left($t, "/$two"), '', '... all are marked');
note('they fetched ' . join(' and ',
    map { sum(%{ $got->{$_} // {} }) } qw(a b)));


# --- kill -9 of the crawler -------------------------------------------------

my ($kills, $all) = (0, {});


# kills a crawler after some seconds

sub kill_crawler
{
    my ($port, $after, @options) = @_;

    my $pid = crawl('killed', $port, @options);

    sleep $after;
    kill 'KILL', $pid;
    ends($pid);
    $kills++;
    $got = fetched();
    $all->{$_} += $got->{all}{$_} for keys %{ $got->{all} // {} };
}


# the first one marks pages, and cannot store their links

my $stuck = UrlStore::Fake->new(sub {
    my ($name, $n, $target) = @_;
    return $n > 6 && $target =~ m{/add} ? { status => 503 }
        : { forward => $store };
});

kill_crawler($stuck->port . '/x/y/three', 4);

kill_crawler("$store/three", $_, URLSTORE_RESUME => 1,
    DOWNLOAD_DELAY => .02, CONCURRENT_REQUESTS => 4) for 2.8, 3.3;

my $before = keys %$all;
ok(ends(crawl('resumed', "$store/three", URLSTORE_RESUME => 1)),
    "a crawler after $kills kills");
$got = fetched();
$all->{$_} += $got->{all}{$_} for keys %{ $got->{all} // {} };
is(join(' ', missing($all)), '', '... fetches every page that was left')
    or show_log('resumed');
is(left($t, '/three'), '', '... and all are marked');
note("$before of $pages pages before the last run, "
    . (sum(%$all) - $pages) . ' fetched again');


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
$got = fetched();
is(sum(%{ $got->{all} }), $pages,
    "a crawler whose store is busy $busy times fetches each page once")
    or show_log('busy');
is(scalar missing($got->{all}), 0, '... all of them');
is(left($t, '/four'), '', '... and all are marked');

# each third answer is lost after the store has done what it was asked for

my $fake = UrlStore::Fake->new(sub {
    my ($name, $n) = @_;
    return { forward => $store, $n % 3 == 2 ? (drop => 'sent') : () };
});

ends(crawl('lost', $fake->port . '/x/y/five'));
$got = fetched();
is(join(' ', missing($got->{all})), '',
    'a crawler that loses each third answer of its store loses no page')
    or show_log('lost');
is(left($t, '/five'), '', '... all are marked');
note('fetched again: ' . (sum(%{ $got->{all} }) - $pages));

my $d = UrlStore::Test->new->allow_kills->run(<<'CONF');
urlstore_zone disk 16m path=%%DIR%%/disk sync=always marks=visited;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api disk; }
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
$got = fetched();
is(join(' ', missing($got->{all})), '',
    "a crawler whose store is killed and started $restarts times loses no"
    . ' page') or show_log('restarted');
is(left($d, ''), '', '... all are marked') or show_log('restarted');
note('fetched again: ' . (sum(%{ $got->{all} }) - $pages));
