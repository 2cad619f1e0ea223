#!/usr/bin/perl

# Real crawlers with a store, on a generated site.  Each page is linked in
# several spellings: with and without www., with a fragment, a port, dots, in
# capitals.  A crawler is killed once and started again.  It has to fetch
# every page, and none twice that had its mark when it was killed.
#
#     make test-crawl                             5,000 pages
#     CRAWLERS=scrapy prove -It/lib t/clients/crawl.t    some of them

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(time);
use UrlStore::Site;
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;
my $pages = full() ? 5000 : 300;
my $site = UrlStore::Site->spelled($pages);
my $dir = $site->dir;
my $start = $site->urls->[0];


# what runs in $dir, for a store and the URL to begin with

my %crawlers = (
    crawlee => sub {
        my ($store) = @_;

        return (qw(node crawlee.mjs), $store, $start, $site->proxy);
    },
    # no package has Heritrix: its calls, in their order
    heritrix => sub {
        my ($store, $again) = @_;

        return (qw(java -cp classes Crawl), $store, $start, $site->proxy,
            $again ? 1 : 0);
    },
    scrapy => sub {
        my ($store, $again) = @_;

        return (qw(/usr/bin/python3 -B addon.py), $store, $start,
            $again ? 1 : 0);
    },
);


$site->node_project;
is(system("cd $top/clients/java && javac --release 11 -Xlint:all -Werror"
    . " -d $dir/classes -sourcepath .:heritrix:test/heritrix"
    . " test/heritrix/Crawl.java"), 0, 'the filter for Heritrix is compiled');

# Scrapy 2.8 has no add-ons: their call is made here

spew("$dir/addon.py", <<'END');
import sys
from links import Links
from scrapy.crawler import CrawlerProcess
from scrapy.settings import SETTINGS_PRIORITIES, Settings, default_settings
from urlstore.scrapy import Addon

store, start, again = sys.argv[1:]
Links.custom_settings = None
settings = Settings({"URLSTORE_URL": store, "URLSTORE_RESUME": again,
                     "LOG_LEVEL": "INFO", "ADDONS": {Addon: 300}})
if not hasattr(default_settings, "ADDONS"):
    SETTINGS_PRIORITIES["addon"] = 15
    Addon().update_settings(settings)
process = CrawlerProcess(settings)
process.crawl(Links, start=start)
process.start()
END

$ENV{PYTHONPATH} = join ':', "$top/clients/python",
    "$top/clients/python/examples", $ENV{PYTHONPATH} // ();
$ENV{http_proxy} = $site->proxy;
$ENV{no_proxy} = '127.0.0.1';
$ENV{CRAWLEE_STORAGE_DIR} = "$dir/storage";
$ENV{CRAWLEE_MEMORY_MBYTES} = 1024;

my @names = grep { !$ENV{CRAWLERS} || $ENV{CRAWLERS} =~ /\b$_\b/ }
    sort keys %crawlers;
my $t = UrlStore::Test->new->run(
    join('', map { "urlstore_zone $_ 32m marks=visited;\n" } @names)
    . "server { listen 127.0.0.1:%%PORT%%;\n"
    . join('', map { "location /$_/ { urlstore_api $_; }\n" } @names) . '}');


sub crawl
{
    my ($name, $again) = @_;

    my $pid = fork() // die "fork: $!";

    return $pid if $pid;

    open STDIN, '<', '/dev/null';
    open STDOUT, '>>', "$dir/$name.out";
    open STDERR, '>&', \*STDOUT;
    chdir $dir;
    exec $crawlers{$name}->('http://127.0.0.1:' . $t->port . "/$name", $again)
        or POSIX::_exit(127);
}


sub marked
{
    my ($name) = @_;

    return grep { !m{/robots\.txt$} } map { (split /\t/)[1] } split /\n/,
        $t->get("/$name/urls?mark=visited&limit=10000")->{body};
}


for my $name (@names) {
    my $begin = time;
    my $pid = crawl($name, 0);

    wait_until(600, sub {
        waitpid($pid, POSIX::WNOHANG()) == $pid
            || $site->requests > $pages * .4 && marked($name) > $pages * .1
    });
    is(kill('KILL', $pid), 1, "$name begins")
        or diag(substr slurp("$dir/$name.out"), -3000);
    waitpid $pid, 0;

    my $before = $site->fetched->{all};
    my @done = $site->numbers(marked($name));

    $pid = crawl($name, 1);
    waitpid $pid, 0;
    is($?, 0, '... is killed, goes on and ends');

    my $after = $site->fetched->{all};
    my %got = %$before;
    $got{$_} += $after->{$_} for keys %$after;

    is(scalar $site->missing(\%got), 0, '... fetches every page')
        or diag(substr slurp("$dir/$name.out"), -3000);
    is(scalar grep({ $_ > 1 } values %$before), 0, '... once until the kill');
    is(scalar grep({ $_ > 1 } values %$after), 0, '... once after it');
    is(scalar grep({ $after->{$_} } @done), 0,
        '... and nothing again that was marked');
    is(scalar marked($name), $pages, '... and marks each');

    note(sprintf '%s: %d pages, %d marked and %d fetched at the kill, %d '
        . 'twice, %.1f s', $name, $pages, scalar @done, scalar keys %$before,
        scalar(grep { $_ > 1 } values %got), time - $begin);
}
