#!/usr/bin/perl

# The examples in five languages run, and say the same; docs/api.md shows them
# as they are.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;

my %examples = (
    'curl'   => "sh $top/examples/example.sh",
    'Python' => "python3 $top/examples/example.py",
    'Go'     => "go run $top/examples/example.go",
    'Java'   => "java $top/examples/Example.java",
    'Node'   => "node $top/examples/example.mjs",
);

my $expected = <<"END";
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

my $conf = '';

for my $n (1 .. 5) {
    $conf .= "urlstore_zone u$n 16m;\n";
}

$conf .= "server {\nlisten 127.0.0.1:%%PORT%%;\n";

for my $n (1 .. 5) {
    $conf .= "location /crawl/$n/ { urlstore_api u$n; }\n";
}

my $t = UrlStore::Test->new->run("$conf}\n");
my $n = 0;

$ENV{GOCACHE} = $t->dir . '/go-cache';
$ENV{GOFLAGS} = '-mod=mod';
$ENV{GOTOOLCHAIN} = 'local';

for my $name (sort keys %examples) {
    $n++;

    my $out = `$examples{$name} http://127.0.0.1:@{[$t->port]}/crawl/$n 2>&1`;

    is($out, $expected, "$name example");
}


# what the documentation shows is what ran

my $code = join "\n", map { slurp($_) } glob("$top/examples/*");
my $shown = 0;

for my $block (slurp("$top/docs/api.md")
               =~ /^```(?:sh|python|js|go|java)\n(.*?)^```$/msg)
{
    $shown++;

    ok(has($code, $block), 'docs/api.md shows: ' . ($block =~ /^(.*)$/m)[0]);
}

cmp_ok($shown, '>=', 10, 'docs/api.md has examples in all languages');


# text in text, whatever the margin

sub has
{
    my ($all, $part) = map { s/^[ \t]+//mgr } @_;

    return index($all, $part) >= 0;
}
