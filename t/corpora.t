#!/usr/bin/perl

# The data of tests and benchmarks: nothing in the repository names a folder
# outside of it, t/data/README.md lists what is there, tools/corpus.sh finds
# lists, and tools/corpora makes them by its rules.

use strict;
use warnings;

use Cwd qw(abs_path);
use Digest::SHA qw(sha256_hex);
use File::Basename qw(basename dirname);
use File::Temp qw(tempdir);
use JSON::PP ();
use Test::More;

my $top;

BEGIN { $top = abs_path(dirname(__FILE__) . '/..') }

use lib "$top/t/lib", "$top/tools/corpora";
use Links qw(csv decode html_address html_links markdown_links resolve);
use Shapes;
use Source;
use UrlStore::Corpora;

my $dir = tempdir(CLEANUP => 1);

chdir $top or die "$top: $!";
delete $ENV{CORPORA};


# --- the repository stands alone

my $beside = '..' . '/shared';
my @files = split /\0/, `tools/files.sh`;
my @named = grep { -f && !-l && named($_) } @files;

cmp_ok(scalar @files, '>', 500, 'files of the project');
is("@named", '', "none names $beside");


# --- t/data: all is described, and small

open my $in, '<', 't/data/README.md' or die $!;
my $readme = do { local $/; <$in> };
my ($bytes, @bad) = 0;

for my $file (glob 't/data/corpora/*') {
    my $name = basename($file, '.txt.xz');
    my $lines = `xz -dc $file | wc -l` + 0;
    my ($said) = $readme =~ /^\| $name \| ([\d,]+) \|/m;

    $bytes += -s $file;
    push @bad, "$name: $lines lines"
        if ($said // '') =~ s/,//gr ne $lines;
}

for my $file (glob 't/data/vectors/*') {
    my $name = basename($file, '.json');
    my ($said) = $readme =~ /^\| \Q$name\E \| ([\d,]+) \|/m;

    open my $fh, '<', $file or die $!;
    my $text = do { local $/; <$fh> };

    # lone surrogates do not matter here

    my $rows = JSON::PP->new->decode($text =~ s/\\u[dD]/\\u0/gr);
    my $cases = grep { ref } @$rows;

    $bytes += -s $file;
    push @bad, "$name: $cases cases"
        if ($said // '') =~ s/,//gr ne $cases;
}

is("@bad", '', 't/data/README.md has each file and its size');
cmp_ok($bytes, '<', 10e6, "$bytes bytes of data");


# --- the finder

sub finder
{
    my ($arguments) = @_;
    my $out = `tools/corpus.sh $arguments 2>&1`;

    chomp $out;

    return ($? >> 8, $out);
}

mkdir "$dir/lists";
spew("$dir/lists/one.txt", "http://a.example/\n");
system("printf 'http://b.example/\\n' | gzip >$dir/lists/two.txt.gz");
system("printf 'http://c.example/\\n' | xz >$dir/lists/eot2024_A.txt.xz");

{
    local $ENV{CORPORA} = "$dir/lists";

    is((finder('cat one'))[1], 'http://a.example/', 'a plain list');
    is((finder('cat two'))[1], 'http://b.example/', 'a list packed by gzip');
    is((finder('cat eot2024_A'))[1], 'http://c.example/', 'by xz');
    is(corpus_file('one'), "$dir/lists/one.txt", 'CORPORA comes first');
    like(corpus_file('zhihu_hot_daily'), qr{/t/data/corpora/},
        'a list that it does not have is a sample');
    is(join(' ', corpus_sampled(qw(one eot2024_A zhihu_hot_daily))),
        'zhihu_hot_daily', 'which are samples');
    is_deeply([ finder('about one zhihu_hot_daily') ], [ 0, "whole lists in"
        . " $dir/lists: one; samples in t/data/corpora: zhihu_hot_daily"
        . ' (make corpora makes the whole lists)' ], 'about');
    is((finder('whole one two'))[0], 0, 'whole lists');
    is((finder('whole one zhihu_hot_daily'))[0], 1, 'not whole');
    like((finder('path none'))[1], qr/no list "none" in .*: .* one .* two/,
        'no such list, and which there are');
    is((finder('path none'))[0], 1, 'is an error');
    is(eval { corpus('one', 2) }, undef, 'more lines than there are');
    like($@, qr/1 lines, 2 are needed/, 'are refused');
}

{
    local $ENV{CORPORA} = "$dir/none";
    like((finder('names'))[1], qr/CORPORA=.* is not a directory/,
        'CORPORA that is not there');
}

is(scalar @{ corpus('eot2024_A', 5) }, 5, 'the first lines of a list');
is(scalar @{ generated(7) }, 7, 'generated ones');


# --- the rules by which lists are made

my @rows;

csv(qq{a,"b ""x"" , y",c\r\n"d"e,,\n"two\nlines",f}, sub { push @rows, [@_] });
is_deeply(\@rows, [ [ 'a', 'b "x" , y', 'c' ], [ 'de', '', '' ],
    [ "two\nlines", 'f' ] ], 'csv');

my $page = <<'HTML';
<link rel="stylesheet" href="/a.css"><link rel="next" href="p2?x=1&amp;y=2">
<!-- <a href="/comment"> --><script>'<a href="/script">'</script>
<a class=x HREF='/q?a>b#top'>x</a> <area href=../up> <a href="mailto:x@y.z">
<iframe src="//other.example/f"></iframe> <a href="">here</a>
<a href="http://localhost/x"> <a href="HTTP://Up.example/a b?">
<a href="?only=1&section=2">
HTML

is_deeply([ html_links($page, 'http://h.example/d/page?z=1') ], [
    'http://h.example/d/p2?x=1&y=2', 'http://h.example/q?a>b',
    'http://h.example/up', 'http://other.example/f',
    'http://Up.example/a%20b', "http://h.example/d/page?only=1\xc2\xa7ion=2",
], 'links of a page');

is_deeply([ html_links($page) ], [ 'http://Up.example/a%20b?' ],
    'without an address: absolute ones only');
is_deeply([ html_links('<a href="x"><base href="/b/">', 'http://h.example/') ],
    [ 'http://h.example/b/x' ], 'base');
is(html_address('<meta property="og:url" content="http://a.example/1">'
    . '<link rel="canonical" href="http://a.example/2">'),
    'http://a.example/1', 'the address that a page gives');
is(decode("charset=iso-8859-1 \xe4"), "charset=iso-8859-1 \x{e4}",
    'the encoding that a page declares');

is(resolve('../../../x//y/./z/..', 'http://h.example/a/b/c'),
    'http://h.example/x/y/', 'dots, and empty segments');
is(resolve("/a\n\t b", 'http://h.example/'), 'http://h.example/a%20b',
    'blanks');

is_deeply([ markdown_links('[a](http://a.example/x(1) b) [b](/c/) '
    . '[c](ftp://d/) <http://e.example/> `http://f.example/`') ], [
    'http://a.example/x(1', '/c/', 'http://e.example/', 'http://f.example/' ],
    'markdown');


# --- lists that are made: the same bytes of a seed everywhere

sub shapes
{
    my ($seed, $code) = @_;
    my @urls;

    $code->(Shapes->new($seed, sub { push @urls, @_ }));

    return @urls;
}

my @words = ("\xd0\xb4\xd0\xb0\xd0\xbc", "\xd0\xbd\xd0\xb5\xd1\x82",
    "\xd7\x9b\xd7\x9f");

for (
    [ tokens =>
        '6ad38e2e82da3c57834a8656243657cd6f18ec737d0ed665b9f3ec6ff79ff73f' ],
    [ queries =>
        '46b71f12904e4cecb97f1bdb202c778967523cf0ab100855f36591a4fa044b00' ],
    [ words_paths =>
        'a7c5f2e378f480d58ca1f4b1eddbe21db446c1b53da4fae15d30db7afcda1aa8',
        \@words ],
    [ words_queries =>
        '5b8fa452ec32d9f44ca67e0ade65981ff88476749cbaba85721a8fdb01512638',
        500, \@words ],
) {
    my ($shape, $pinned, @more) = @$_;
    my @urls = shapes(7, sub { $_[0]->$shape(1_000, @more) });

    is(scalar @urls, 1_000, $shape);
    is(sha256_hex(join "\n", @urls), $pinned, 'the same of a seed');
    isnt(sha256_hex(join "\n", shapes(8, sub { $_[0]->$shape(1_000, @more) })),
        $pinned, 'others of another one');
}

is(scalar(grep { /&list_rank=\d+&source=top_\d$/ }
    shapes(7, sub { $_[0]->words_queries(1_000, 600, \@words) })), 400,
    'URLs that turn');


# --- repositories, and finished lists

my $work = "$dir/work";
my $git = "$dir/mirror/owner+name";

mkdir "$dir/mirror";
system("git init -q $work && mkdir $work/data") == 0 or die;
spew("$work/data/b.txt", "b\n");
spew("$work/data/a.txt", "a\n");
spew("$work/data/large.txt", 'x' x ((4 << 20) + 1));
system("cd $work && git add -A && git -c user.name=t -c user.email=t\@t.example"
    . " commit -qm t && git clone -q --bare $work $git") == 0 or die;
chomp(my $commit = `git -C $work rev-parse HEAD`);

{
    local $ENV{MIRROR} = "$dir/mirror";
    my @seen;

    my $s = Source->new('owner/name', $commit, "$dir/none");
    $s->each_file('data', qr/\.txt$/, sub { push @seen, @_ });
    is_deeply(\@seen, [ 'data/a.txt', "a\n", 'data/b.txt', "b\n" ],
        'files in the order of the tree, without large ones');
    is($s->file('data/b.txt'), "b\n", 'one file');

    is(eval { Source->new('owner/name', '0' x 40, $dir) }, undef,
        'a mirror without the commit');
    like($@, qr/does not have the commit 0{40}/, 'is refused');
    is(eval { Source->new('owner/none', $commit, $dir) }, undef,
        'a mirror without the repository');
    like($@, qr/no bare repository/, 'too');
}

{
    # what would be fetched, from here

    local %ENV = (%ENV, GIT_CONFIG_COUNT => 1,
        GIT_CONFIG_KEY_0 => "url.file://$git.insteadOf",
        GIT_CONFIG_VALUE_0 => 'https://github.com/owner/name');
    delete $ENV{MIRROR};

    my $s = Source->new('owner/name', $commit, "$dir/fetched");
    is($s->file('data/a.txt'), "a\n", 'a commit that is fetched');
    $s->forget;
    ok(!-e "$dir/fetched/owner+name", 'and removed');
}

my $make = "$^X tools/corpora/make.pl";

mkdir "$dir/finished";
system("tools/corpus.sh cat brave_sitelist"
    . " | xz >$dir/finished/brave_sitelist.txt.xz");
{
    local $ENV{CORPORA} = "$dir/finished";
    my $out = `$make $dir/made brave_sitelist 2>&1`;

    is($?, 0, 'a finished list');
    like($out, qr/sha256 is \w{64}, that of the pinned list \w{64}/,
        'that is another one');
    like($out, qr/copied/, 'is taken all the same');
    ok(-s "$dir/made/brave_sitelist.txt.xz", 'and there');
}

like(`MIRROR=$dir/mirror $make $dir/made tweetfeed_iocs 2>&1`,
    qr/^tweetfeed_iocs: MIRROR: no bare repository/,
    'a list without its source');
isnt($?, 0, 'is an error');
like(`$make $dir/made nothing 2>&1`, qr/no such list: nothing/, 'no such list');

done_testing();


sub named
{
    my ($file) = @_;

    open my $fh, '<:raw', $file or die "$file: $!";
    local $/;

    return index(<$fh> // '', $beside) >= 0;
}


sub spew
{
    my ($path, $text) = @_;

    open my $fh, '>', $path or die "$path: $!";
    print $fh $text;
    close $fh or die "$path: $!";
}
