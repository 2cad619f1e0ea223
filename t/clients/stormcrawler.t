#!/usr/bin/perl

# The parse filter for StormCrawler.  clients/java/test/stormcrawler declares
# as much of StormCrawler 3.4 as the filter meets.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $java = "$UrlStore::Test::TOP/clients/java";
my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 16m marks=visited;
urlstore_reject u /trap/;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

is(system("javac --release 11 -Xlint:all -Werror -d $t->{dir}/classes"
    . " -sourcepath $java:$java/examples/stormcrawler:$java/test/stormcrawler"
    . " $java/test/stormcrawler/Pages.java"), 0, 'it is compiled');


sub left
{
    my (@pages) = @_;

    my $store = 'http://127.0.0.1:' . $t->port;

    return `java -cp $t->{dir}/classes Pages $store @pages 2>&1`;
}


my @pages = map { "http://s.test/$_" } 'a,/b,/c', 'b,/a,/c,ftp://s.test/';

is(left(@pages), "/b /c\n/c ftp://s.test/\n", 'links to pages that were '
    . 'fetched are dropped');
is(left($pages[0]), "/c\n", 'a page that is parsed again: what was fetched '
    . 'meanwhile');

is($t->post('/erase', "http://s.test/c\nhttp://s.test/d\n",
    'Content-Type' => 'text/plain')->{status}, 202, 'pages are erased');
is(left('http://s.test/e,/c,/d,/f,/trap/1'), "/f\n", '... and their links '
    . 'dropped, and what a rule rejects');
is($t->get('/urls?mark=visited')->{body},
    "0\thttp://s.test/a\n1\thttp://s.test/b\n3\thttp://s.test/e\n",
    'the pages are marked, and not their links');
