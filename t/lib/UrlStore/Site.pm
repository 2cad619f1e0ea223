package UrlStore::Site;

# A site of stored pages, to be crawled: their URLs are those of a list of
# real links, their links the ones that follow in it, and nginx is the HTTP
# proxy that serves them and logs what was fetched.  An URL that has a page
# only with www., or only without, redirects there.
#
#     my $site = UrlStore::Site->new(300);
#     my $site = UrlStore::Site->spelled(5000);   # generated, in spellings
#     ... a crawler with $site->proxy that begins at $site->urls->[0] ...
#     my $got = $site->fetched;       # by user agent, and by all: page -> n
#
# A store of its own says which spellings are one page; pages are numbered by
# its ids.

use strict;
use warnings;

use File::Copy qw(copy);
use File::Path qw(make_path);
use UrlStore::Test;


sub new
{
    my ($class, $pages) = @_;

    my $self = $class->_serve;
    $self->_make($pages, $self->_real($pages));
    return $self;
}


sub spelled
{
    my ($class, $pages) = @_;

    my $self = $class->_serve;
    $self->_make($pages, $self->_variants($pages));
    return $self;
}


sub _serve
{
    my ($class) = @_;

    my $nginx = UrlStore::Test->new->run(<<'CONF');
log_format crawl '$status $scheme://$host$request_uri $http_user_agent';
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
        try_files "/$host$uri$is_args$args.page" @moved;
    }
    location @moved {
        if (-f "$document_root/$moved$uri$is_args$args.page") {
            return 301 http://$moved$request_uri;
        }
        return 404;
    }
}
CONF
    return bless { nginx => $nginx, dir => $nginx->dir, urls => [] }, $class;
}


# links of each page that are no pages

my @odd = ('mailto:a@b.test', 'javascript:void(0)', 'ftp://b.test/x',
    'http://[b', '#top');


# makes $site->dir a project of a user of Node: the packages and the client
# in node_modules, and the examples

sub node_project
{
    my ($self) = @_;

    my $top = $UrlStore::Test::TOP;
    my $modules = "$top/t/clients/node_modules";
    my $mine = "$self->{dir}/node_modules";

    make_path("$mine/\@types", "$mine/\@crawlee");
    symlink $_, "$mine/" . s{.*/node_modules/}{}r
        for grep { !m{/\@(?:types|crawlee)$} }
            glob("$modules/* $modules/\@*/*");
    symlink "$top/clients/node", "$mine/urlstore";
    copy($_, $self->{dir}) or die "$_: $!"
        for glob("$top/clients/node/examples/*.mjs");
}


sub dir { return $_[0]{dir} }

sub urls { return $_[0]{urls} }

sub proxy { return 'http://127.0.0.1:' . $_[0]{nginx}->port(1) }


# The list of links; the first so many URLs that differ are $self->{urls}.
# This one has the first URLs of a list whose path is a file name as well.

sub _real
{
    my ($self, $pages) = @_;

    my $urls = $self->{urls};
    my (%known, @order);

    for my $url (@{ corpus('html_forms_forums_shops_pages', 30_000) }) {
        next if $url !~ m{^http://[\w.-]+/[\w./?=&;+-]*$}
            || $url =~ m{//.*//|/\.|\.\./} || length $url > 200;

        if (!$known{$url}) {
            last if @$urls == $pages;

            $known{$url} = 1;
            push @$urls, $url if $self->{nginx}->post('/add', "$url\n")->{body}
                =~ /\tnew\t/;
        }

        push @order, $url;
    }

    return @order;
}


# Each URL in four spellings of eight, near to each other and far apart.

sub _variants
{
    my ($self, $pages) = @_;

    my @spell = (
        sub { $_[0] },
        sub { "$_[0]#part" },
        sub { $_[0] =~ s{^http://(www\.)?}{$1 ? 'http://' : 'http://www.'}er },
        sub { $_[0] =~ s{^http://([^/]+)}{'HTTP://' . uc $1}er },
        sub { $_[0] =~ s{^(http://[^/]+)}{$1:80}r },
        sub { $_[0] =~ s{/p}{/%70}r },
        sub { $_[0] =~ s{/p}{/./p}r },
        sub { $_[0] =~ s{/p}{/x/../p}r },
    );
    my @order;

    for my $i (0 .. $pages - 1) {
        my $url = 'http://' . ($i % 3 ? '' : 'www.') . 'site' . $i % 20
            . '.test/d' . int($i / 200) . "/p$i" . ($i % 5 ? '' : '?b=2&a=1');

        push @{ $self->{urls} }, $url;
        $order[$i * 2 + $_] = $spell[($i + 3 * $_) % 8]->($url) for 0, 1;
        $order[$pages * 2 + $i * 2 + $_] = $spell[($i + 5 * $_ + 1) % 8]->($url)
            for 0, 1;
    }

    $self->{nginx}->post('/add', join '', map { "$_\n" } @{ $self->{urls} });
    return @order;
}


# Each page links to what follows in the list, and to two others, so that all
# can be reached.

sub _make
{
    my ($self, $pages, @order) = @_;

    my $urls = $self->{urls};

    die scalar(@$urls) . " pages, $pages are needed\n" if @$urls != $pages;

    for my $i (0 .. $#$urls) {
        my @links = map { $order[($i * 13 + $_) % @order] } 0 .. 19;

        push @links, map { $urls->[$_] } grep { $_ < @$urls }
            2 * $i + 1, 2 * $i + 2;

        $self->{links}[$i] = \@links;
        $self->_write($urls->[$i], @links);
    }
}


sub _write
{
    my ($self, $url, @links) = @_;

    my ($host, $path) = $url =~ m{^http://([^/]+)(/.*)};
    my ($dir) = "$host$path" =~ m{^(.*)/};

    make_path("$self->{dir}/pages/$dir");
    spew("$self->{dir}/pages/$host$path.page",
        "<html><head><title>$host</title></head><body>"
        . join('', map { '<a href="' . s/&/&amp;/gr . "\">link</a>\n" }
            @links, @odd) . '</body></html>');
}


# the links of a page, whichever the spelling of its URL

sub links
{
    my ($self, $url) = @_;

    my ($id) = $self->numbers($url);

    return @{ $self->{links}[$id] };
}


# the numbers of such URLs

sub numbers
{
    my ($self, @urls) = @_;

    return map { (split /\t/)[0] } split /\n/, $self->{nginx}->post('/seen',
        join '', map { "$_\n" } @urls)->{body};
}


# what was fetched since the last call: by the user agent, and by all, the
# number of the page -> how often

sub fetched
{
    my ($self) = @_;

    my $log = "$self->{dir}/crawl.log";
    my %got = (all => {});

    my @log = map { [split / /, $_, 3] } split /\n/, slurp($log, 1);
    my @pages = grep { $_->[0] == 200 } @log;
    my @ids = $self->numbers(map { $_->[1] } @pages);

    for my $i (0 .. $#pages) {
        $got{$pages[$i][2]}{$ids[$i]}++;
        $got{all}{$ids[$i]}++;
    }

    truncate $log, 0 or die "truncate: $!";
    return \%got;
}


# how many requests came since the last call of fetched()

sub requests
{
    my ($self) = @_;

    return slurp("$self->{dir}/crawl.log", 1) =~ tr/\n//;
}


# the numbers of the pages that are not in such a list

sub missing
{
    my ($self, $got) = @_;

    return grep { !$got->{$_} } 0 .. $#{ $self->{urls} };
}


1;
