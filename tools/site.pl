#!/usr/bin/perl

# Builds the documentation as static HTML:
#
#     tools/site.pl OUT [ROOT]
#
# The pages are README.md of ROOT (.), the Markdown below docs/ and clients/,
# the Markdown that these link to, and, if ROOT/build/urlstore exists, the
# options of each command.  A page keeps its path, with .html for .md; README.md
# becomes index.html.  Other files that pages link to are copied.  The pages
# load nothing from other hosts.
#
# cmark-gfm (Debian: cmark-gfm) turns Markdown into HTML as GitHub does.  GitHub
# adds to each heading an id, which is made here by the same rule.
#
# Each link of each page is then looked up in OUT: file and id.  Those that lead
# nowhere are printed, and the exit code is 1.

use strict;
use warnings;
use utf8;

use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Find qw(find);
use File::Path qw(make_path remove_tree);
use File::Spec;

@ARGV == 1 || @ARGV == 2 or die "usage: tools/site.pl OUT [ROOT]\n";

my ($out, $root) = @ARGV;
$root //= '.';

my %page;           # path without ending => { title, html, ids, from }
my %copied;         # files beside the pages
my @order;          # of the navigation

my $style = join '', <DATA>;

remove_tree($out);
read_pages();
write_pages();
exit(check() ? 0 : 1);


sub slurp
{
    my ($path) = @_;

    open my $fh, '<:encoding(UTF-8)', $path or die "$path: $!\n";
    local $/;

    return scalar <$fh>;
}


sub spew
{
    my ($path, $text) = @_;

    make_path(dirname($path));
    open my $fh, '>:encoding(UTF-8)', $path or die "$path: $!\n";
    print $fh $text;
    close $fh or die "$path: $!\n";
}


# --- Markdown ---------------------------------------------------------------

sub read_pages
{
    my @files = grep { -e "$root/$_" } 'README.md';

    for my $dir (grep { -d "$root/$_" } 'docs', 'clients') {
        find({ no_chdir => 1, wanted => sub {
            $File::Find::prune = 1 if /node_modules$/;
            push @files, File::Spec->abs2rel($_, $root) if /\.md$/;
        } }, "$root/$dir");
    }

    while (defined(my $file = shift @files)) {
        my $name = page_of($file);

        next if $page{$name};

        add_page($file, html("$root/$file"));
        push @files, grep { defined && -f "$root/$_" }
            map { resolve($name, $_) }
            $page{$name}{html} =~ /href="([^"#:]+\.md)/g;
    }

    add_commands("$root/build/urlstore") if -x "$root/build/urlstore";

    # the README has the documents in the order in which to read them

    my %seen = (index => 1);

    @order = grep { $page{$_} && !$seen{$_}++ }
        map { page_of(resolve('index', $_)) // () }
        ($page{index} ? $page{index}{html} =~ /href="([^"#:]+\.md)/g : ()),
        (map { $page{$_}{from} } sort keys %page);
}


sub html
{
    my ($path) = @_;

    open my $fh, '-|:encoding(UTF-8)', 'cmark-gfm', '--to', 'html',
        '-e', 'table', '-e', 'autolink', '-e', 'strikethrough', $path
        or die "cmark-gfm: $!\n";
    local $/;
    my $html = <$fh> // '';
    close $fh or die "cmark-gfm $path: exit code " . ($? >> 8) . "\n";

    return $html;
}


# README.md -> index, a/README.md -> a/index, a/b.md -> a/b; undef: no page

sub page_of
{
    my ($path) = @_;

    return undef if $path !~ s/\.md$//;

    return $path =~ s{(^|/)README$}{$1index}r;
}


sub add_page
{
    my ($from, $html) = @_;

    my (%ids, $title);

    $html =~ s{<h([1-6])>(.*?)</h\1>}{
        my ($level, $text) = ($1, $2);
        my $id = slug($text);
        my $n = $ids{$id}++;

        $id .= "-$n" if $n;
        $ids{$id} //= 1;
        $title //= $text =~ s/<[^>]*>//gr;

        qq(<h$level id="$id">$text<a class="here" href="#$id" )
            . qq(aria-label="link to this heading">#</a></h$level>)
    }gse;

    $page{page_of($from)} = { from => $from, html => $html, ids => \%ids,
        title => $title // $from };
}


# as GitHub makes ids of headings: letters, digits, "_" and "-"; spaces are "-"

sub slug
{
    my ($html) = @_;

    my %entity = (amp => '&', lt => '<', gt => '>', quot => '"');

    $html =~ s/<[^>]*>//g;
    $html =~ s/&(amp|lt|gt|quot);/$entity{$1}/g;

    return lc($html =~ s/[^\w\- ]//gr) =~ tr/ /-/r;
}


# the options of all commands, by the help that they print

sub add_commands
{
    my ($urlstore) = @_;

    my $escape = sub {
        my ($text) = @_;
        $text =~ s/&/&amp;/g;
        $text =~ s/</&lt;/g;
        return $text;
    };
    my $help = `$urlstore --help`;
    my $html = '<h1>The command urlstore</h1><pre>' . $escape->($help)
        . '</pre>';

    for my $command ($help =~ /^  ([a-z]+)/mg) {
        $html .= "<h2>urlstore $command</h2><pre>"
            . $escape->(scalar `$urlstore $command --help`) . '</pre>';
    }

    add_page('docs/commands.md', $html);
}


# --- HTML -------------------------------------------------------------------

# the path of a link, from ROOT; undef: outside of it

sub resolve
{
    my ($name, $link) = @_;

    my @path = split m{/}, dirname($name);

    for my $part (split m{/}, $link) {
        next if $part eq '.' || $part eq '';
        return undef if $part eq '..' && (!@path || $path[-1] eq '.');

        $part eq '..' ? pop @path : push @path, $part;
    }

    return join('/', grep { $_ ne '.' } @path) || '.';
}


sub write_pages
{
    for my $name (sort keys %page) {
        my $html = $page{$name}{html};

        $html =~ s{(href|src)="([^"#]+)(#[^"]*)?"}{
            qq($1=") . linked($name, $2) . ($3 // '') . '"'
        }ge;

        $html =~ s{<table>}{<div class="wide"><table>}g;
        $html =~ s{</table>}{</table></div>}g;

        spew("$out/$name.html", whole($name, $html));
    }
}


# where a link of a page leads in OUT, from that page

sub linked
{
    my ($name, $link) = @_;

    return $link if $link =~ /^[a-z]+:/i;

    my $path = resolve($name, $link) // return $link;

    if (-d "$root/$path") {
        return ($link =~ s{/?$}{/}r) . (-f "$root/$path/README.md" ? 'index'
            : contents($path)) . '.html';
    }

    my $to = page_of($path);

    return $link =~ s{[^/]*$}{}r . ($to =~ m{([^/]*)$})[0] . '.html'
        if defined $to && $page{$to};

    if (-f "$root/$path" && !$copied{$path}++) {
        make_path(dirname("$out/$path"));
        copy("$root/$path", "$out/$path") or die "$path: $!\n";
    }

    return $link;
}


# the page of a folder of pages that has no README.md

sub contents
{
    my ($dir) = @_;

    my $list = join '', map {
        qq(<li><a href=") . s{.*/}{}r . qq(.html">$page{$_}{title}</a></li>\n)
    } grep { m{^\Q$dir\E/[^/]+$} && $page{$_}{html} } sort keys %page;

    if ($list ne '') {
        $page{"$dir/contents"} = { from => "$dir/", ids => {}, title => $dir };
        spew("$out/$dir/contents.html",
            whole("$dir/contents", "<h1>$dir</h1>\n<ul>\n$list</ul>\n"));
    }

    return 'contents';
}


sub whole
{
    my ($name, $html) = @_;

    my $up = '../' x ($name =~ tr{/}{});
    my $index = $page{index} ? $page{index}{title} : 'Documents';
    my $title = $page{$name}{title};
    my $list = join "\n", map {
        my $here = $_ eq $name ? ' aria-current="page"' : '';
        qq(<li><a href="$up$_.html"$here>$page{$_}{title}</a></li>)
    } @order;

    return <<"END";
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
$style</style>
</head>
<body>
<nav>
<p><a href="${up}index.html">$index</a></p>
<ul>
$list
</ul>
</nav>
<main>
$html</main>
</body>
</html>
END
}


# --- links ------------------------------------------------------------------

sub check
{
    my ($links, $outside, @broken) = (0, 0);

    for my $name (sort keys %page) {
        my $html = slurp("$out/$name.html");

        while ($html =~ /(?:href|src)="([^"#]*)(?:#([^"]*))?"/g) {
            my ($path, $id) = ($1, $2);

            $outside++, next if $path =~ /^[a-z]+:/i;
            $links++;

            my $to = $path eq '' ? "$name.html" : resolve($name, $path);

            push @broken, "$page{$name}{from}: $path"
                . (defined $id ? "#$id" : '')
                if !defined $to || !-f "$out/$to" || defined $id
                && !$page{$to =~ s/\.html$//r}{ids}{$id};
        }
    }

    print "broken link in $_\n" for @broken;
    printf "%d pages, %d files, %d links, %d broken; %d to other hosts\n",
        scalar keys %page, scalar keys %copied, $links, scalar @broken,
        $outside;

    return !@broken;
}


__DATA__
:root {
    --back: #fff; --text: #1c232b; --soft: #5d6975; --line: #dfe4e8;
    --key: #14695f; --code: #f4f6f7;
}
@media (prefers-color-scheme: dark) {
    :root {
        --back: #14181c; --text: #e4e8eb; --soft: #98a4ae; --line: #2e363d;
        --key: #5cc2b2; --code: #1c2227;
    }
    img { background: #fff; }
}
* { box-sizing: border-box; }
body {
    background: var(--back); color: var(--text); margin: 0 auto;
    max-width: 76rem; padding: 1rem; font: 16px/1.55 system-ui, sans-serif;
    display: grid; grid-template-columns: 15rem minmax(0, 1fr); gap: 2.5rem;
}
nav { font-size: .9em; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li { margin: .3em 0; line-height: 1.3; }
nav [aria-current] { font-weight: bold; color: var(--text); }
a { color: var(--key); text-decoration: none; }
a:hover, a:focus { text-decoration: underline; }
h1, h2, h3 { line-height: 1.25; margin: 1.6em 0 .5em; }
h1 { margin-top: .4em; }
.here { margin-left: .4em; color: var(--line); font-weight: normal; }
code, pre { font: .88em/1.45 ui-monospace, monospace; background: var(--code); }
code { padding: .1em .25em; border-radius: 3px; }
pre { padding: .8em 1em; border-radius: 4px; overflow-x: auto; }
pre code { padding: 0; font-size: 1em; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 1em 0; }
th, td {
    border: 1px solid var(--line); padding: .3em .6em; text-align: left;
    vertical-align: top;
}
img { max-width: 100%; }
@media (max-width: 50rem) {
    body { display: block; }
    nav { margin-bottom: 2em; }
}
