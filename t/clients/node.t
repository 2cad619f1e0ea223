#!/usr/bin/perl

# The Node package: its types hold for the examples, and the recipe for
# Crawlee runs, on a site of stored pages, through kills.

use strict;
use warnings;

use lib 't/lib';
use File::Copy qw(copy);
use File::Path qw(make_path);
use UrlStore::Site;
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;
my $modules = "$top/t/clients/node_modules";
my $examples = "$top/clients/node/examples";
my $site = UrlStore::Site->new(100);
my $dir = $site->dir;

# as a project of a user: the packages in node_modules, the client among them

make_path("$dir/node_modules/\@types", "$dir/node_modules/\@crawlee");
symlink $_, "$dir/node_modules/" . s{.*/node_modules/}{}r
    for grep { !m{/\@(?:types|crawlee)$} } glob("$modules/* $modules/\@*/*");
symlink "$top/clients/node", "$dir/node_modules/urlstore";
copy($_, $dir) or die "$_: $!" for glob("$examples/*.mjs");

my $tsc = `cd $dir && node $modules/typescript/bin/tsc --noEmit --strict \\
    --checkJs --allowJs --skipLibCheck --module nodenext --target es2022 \\
    node_modules/urlstore/index.d.ts crawlee.mjs 2>&1`;

is($tsc, '', 'the types, and the recipe for Crawlee by them');


sub crawlee
{
    my ($port) = @_;

    my $pid = fork() // die "fork: $!";

    return $pid if $pid;

    open STDOUT, '>>', "$dir/crawlee.out";
    open STDERR, '>>', "$dir/crawlee.out";
    $ENV{CRAWLEE_STORAGE_DIR} = "$dir/storage";
    $ENV{CRAWLEE_MEMORY_MBYTES} = 1024;
    chdir $dir;
    exec 'node', 'crawlee.mjs', "http://127.0.0.1:$port", $site->urls->[0],
        $site->proxy or POSIX::_exit(127);
}


sub ends { waitpid $_[0], 0; return $? == 0 }


my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone one 16m marks=visited;
urlstore_zone two 16m marks=visited;
server {
    listen 127.0.0.1:%%PORT%%;
    location /one/ { urlstore_api one; }
    location /two/ { urlstore_api two; }
}
CONF
my $port = $t->port;
my $left = '/urls?mark=!visited';

ok(ends(crawlee("$port/one")), 'Crawlee') or diag(slurp("$dir/crawlee.out"));
my $got = $site->fetched->{all};
is(join(' ', $site->missing($got)), '', '... fetches each page');
is((grep { $_ > 1 } values %$got), 0, '... once');
is($t->get("/one$left")->{body}, '', '... and all are marked');
ok(ends(crawlee("$port/one")), 'a second time');
is(scalar %{ $site->fetched->{all} }, 0, '... fetches nothing');

my $all = {};

for my $pages (20, 40) {
    my $pid = crawlee("$port/two");

    wait_until(20, sub { $site->requests >= $pages });
    kill 'KILL', $pid;
    ends($pid);
    $got = $site->fetched->{all};
    $all->{$_} += $got->{$_} for keys %$got;
}

note(scalar(%$all) . ' pages before the last run');
ok(ends(crawlee("$port/two")), 'after two kills');
$got = $site->fetched->{all};
$all->{$_} += $got->{$_} for keys %$got;
is(join(' ', $site->missing($all)), '', '... every page has been fetched');
is($t->get("/two$left")->{body}, '', '... and all are marked');
