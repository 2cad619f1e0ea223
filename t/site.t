#!/usr/bin/perl

# The documents as a site (make site): each link of each page leads to a file
# and an id that exist, and a link that does not is reported.  The pages are
# whole HTML and load nothing from other hosts.

use strict;
use warnings;

use lib 't/lib';
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use HTML::Parser ();
use Test::More;

use UrlStore::Test qw(slurp spew);

my $top = $UrlStore::Test::TOP;
my $dir = tempdir(CLEANUP => 1);

chdir $top or die $!;


sub site { return scalar `tools/site.pl @_ 2>&1` }


my $said = site("$dir/site");

is($?, 0, 'all links of the documents lead somewhere') or diag($said);
like($said, qr/^\d\d pages, \d+ files, \d{3,} links, 0 broken/, '... many');

my @missing = grep { !-s "$dir/site/" . s/README\.md$/index.html/r
    =~ s/\.md$/.html/r } qw(README.md CHANGELOG.md),
    glob 'docs/*.md docs/*/*.md clients/*.md clients/*/*.md';

is("@missing", '', 'each document is a page');
is(join(' ', grep { !is_html(slurp($_)) }
    split /\n/, `find $dir/site -name '*.html'`), '', 'pages are whole HTML');

my $index = slurp("$dir/site/index.html");

like($index, qr{<li><a href="docs/install.html">Installation</a>},
    'a page leads to all others');
like($index, qr/<table>.*<td><a href="docs\/api\.html">/s, 'tables');
like(slurp("$dir/site/docs/commands.html"),
    qr/<h2 id="urlstore-dedup">.*<pre>usage: urlstore dedup/s,
    'the options of commands');


# what GitHub makes of headings, and what must be reported

make_path("$dir/root/docs/a");
spew("$dir/root/docs/b.md", "# B `c_d` & (E)!\n## Same\n## Same\n");
spew("$dir/root/docs/a/x.md", "# X\n");
spew("$dir/root/LICENSE", "free\n");

for (['[b](docs/b.md#b-c_d--e)', ''],
    ['[b](docs/b.md#same-1) [a](docs/a/) [r](#r)', ''],
    ['[up](docs/../LICENSE)', ''],
    ["    [b](docs/no.md)", ''],
    ['[b](docs/b.md#same-2)', 'docs/b.html#same-2'],
    ['[b](docs/no.md)', 'docs/no.md'],
    ['[b](#no)', '#no'],
    ['![b](no.svg)', 'no.svg'],
    ['[b](../outside)', '../outside'],
    ['[b](no/)', 'no/'])
{
    my ($text, $broken) = @$_;

    spew("$dir/root/README.md", "# R\n\n$text\n");
    $said = site("$dir/out", "$dir/root");

    is(($? ? 1 : 0) . join(',', $said =~ /^broken link in README.md: (.*)/mg),
        ($broken eq '' ? 0 : 1) . $broken, "$text: "
        . ($broken eq '' ? 'leads somewhere' : 'reported'));
}

done_testing();


# tags are closed in order, and nothing is loaded from elsewhere

sub is_html
{
    my ($text) = @_;

    my (@open, $fault);
    my %empty = map { $_ => 1 } qw(meta br hr img input);

    my $parser = HTML::Parser->new(api_version => 3,
        start_h => [ sub {
            my ($tag, $attr) = @_;
            push @open, $tag if !$empty{$tag};
            $fault = "$tag loads $attr->{src}"
                if ($attr->{src} // '') =~ m{^(?:\w+:|//)};
        }, 'tagname, attr' ],
        end_h => [ sub {
            my ($tag) = @_;
            $fault = "</$tag>" if (pop @open // '') ne $tag;
        }, 'tagname' ]);

    $parser->parse($text);
    $parser->eof;
    diag($fault) if $fault;

    return !$fault && !@open && $text =~ /^<!DOCTYPE html>/;
}
