#!/usr/bin/perl

# The tours of the clients, and that of curl, run and print the same; what the
# guides show of them is what ran.

use strict;
use warnings;

use lib 't/lib';
use File::Path qw(make_path);
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;
my $build = "$top/build/clients";
my $clients = "$top/clients";

my %tours = (
    'Python' => "PYTHONPATH=$clients/python /usr/bin/python3 -B"
        . " $clients/python/examples/tour.py",
    'Node' => "node $clients/node/examples/tour.mjs",
    'Go' => "cd $clients/go && go run ./examples/tour",
    'Java' => "cd $clients/java && javac --release 11 -Xlint:all -Werror"
        . " -d $build UrlStore.java examples/Tour.java"
        . " && java -cp $build Tour",
);

my $expected = <<"END";
0\tnew\thttp://example.com/shop/list.html
1\tnew\thttp://example.com/shop/item?id=7
2\tnew\thttp://example.com/about.html
2\tseen\thttp://example.com/about.html
-\tinvalid\tscheme
2
1\tseen\thttp://example.com/shop/item?id=7
-\tunseen\thttp://example.com/never
http://example.com/shop/item?id=7
0\tok\thttp://example.com/shop/list.html
2\tok\thttp://example.com/about.html
99\tunknown\t-
1\thttp://example.com/shop/item?id=7
404 Not Found
1\tnew\thttp://example.com/shop/item?id=7
2\tnew\thttp://example.com/about.html
END

my $curl = <<"END";
0\tnew\thttp://example.com/shop/list.html
1\tnew\thttp://example.com/shop/item?id=7
2\tnew\thttp://example.com/about.html
2\tseen\thttp://example.com/about.html
-\tinvalid\tscheme
1\tseen\thttp://example.com/shop/item?id=7
-\tunseen\thttp://example.com/never
http://example.com/shop/item?id=7
0\thttp://example.com/shop/list.html
2\thttp://example.com/about.html
99\t-\tunknown
0\thttp://example.com/shop/list.html
1\thttp://example.com/shop/item?id=7
2\thttp://example.com/about.html
END

make_path($build);

my $conf = join '', map { "urlstore_zone $_ 16m marks=visited;\n" }
    'curl', sort keys %tours;

$conf .= "server {\nlisten 127.0.0.1:%%PORT%%;\n";
$conf .= "location /crawl/$_/ { urlstore_api $_; }\n"
    for 'curl', sort keys %tours;

my $t = UrlStore::Test->new->run("$conf}\n");
my $below = 'http://127.0.0.1:' . $t->port . '/crawl';

is(`sh $top/examples/example.sh $below/curl 2>&1`, $curl, 'curl');

is(`$tours{$_} $below/$_ 2>&1`, $expected, $_) for sort keys %tours;


# what the documentation shows

my $code = join "\n", map { slurp($_) } glob("$top/examples/* "
    . "$clients/*/examples/* $clients/*/examples/*/*");

for my $guide (qw(api clients crawlers)) {
    my $shown = 0;

    for my $block (slurp("$top/docs/$guide.md")
                   =~ /^```(?:sh|python|js|ts|go|java|ruby)\n(.*?)^```$/msg)
    {
        $shown++;
        ok(has($code, $block), "docs/$guide.md shows: "
            . ($block =~ /^(.*)$/m)[0]);
    }

    cmp_ok($shown, '>=', 2, "docs/$guide.md has examples");
}


# text in text, whatever the margin

sub has
{
    my ($all, $part) = map { s/^[ \t]+//mgr } @_;

    return index($all, $part) >= 0;
}
