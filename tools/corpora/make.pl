#!/usr/bin/perl

# Makes the whole lists of URLs from public repositories at pinned commits, and
# some from seeds:
#
#     tools/corpora/make.pl DIRECTORY [NAME...]      all lists, or these
#
# DIRECTORY/NAME.txt.xz has one URL a line, as found, in the order of its
# source and with its repetitions.  A list that is there already is kept; one
# whose checksum is not the pinned one is removed.
#
#     MIRROR=DIR     bare repositories at hand, as DIR/OWNER+NAME or
#                    DIR/OWNER+NAME/repo; else they are fetched, and removed
#                    when the list is made
#     CORPORA=DIR    finished lists at hand, as DIR/NAME.txt.xz; they are
#                    copied

use strict;
use warnings;

use Digest::SHA;
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Path qw(make_path);
use JSON::PP qw(decode_json);

use lib dirname(__FILE__);
use Links qw(csv decode html_address html_links markdown_links resolve);
use Shapes;
use Source;

my $words = 'hermitdave/FrequencyWords'
    . ' 0803742433136b911a1e8dc05bf48a025f35523b';

my @lists = (
    [ brave_sitelist => \&brave_sitelist,
        '63f3063c43528a8de1926f7eb3f51b05d72a3b1c94c33344d73e8ac5c71fdfa5',
        'brave/adblock-rust 886d45dcf5283ce8eddc6d961e7dd27966ab23f2' ],
    [ tweetfeed_iocs => \&tweetfeed_iocs,
        'd0f6a1a06d14ef8329ded4e6bd976e9e87d3dd3cb19b30906ffbbed5820891ca',
        '0xDanielLopez/TweetFeed 7fef7d8e2dcfdc667496aa3951c4e6bf46e592a8' ],
    [ zhihu_hot_daily => \&zhihu_hot_daily,
        '4a4945af2a863a883fdc698321ec139968c85200f4abfad1b3d2311bedb58b02',
        'justjavac/zhihu-trending-hot-questions'
            . ' 6fe80c7c3d3494e3e83f92b8dd8155a171a234b5' ],
    [ eot2024_A => \&eot2024_A,
        '9579be4b964f58ef53f60ac67a1b2cca1b893f7df4a51e1b95de8cbe2f9582b8',
        'end-of-term/eot2024 b13db480ec8e1c871aa379a507f870ef9e60d334' ],
    [ alphagov_old_urls => \&alphagov_old_urls,
        '7e7530fa910e8ead2f1a61b4c8302f6e9e679ceafe22b26e26d6f906f418dee5',
        'alphagov/redirector 753a4110470599c7fe91cadf2a1f4368806c1f77'
            . ' history' ],
    [ html_news_blogs_pages => \&html_news_blogs_pages,
        'd22ae01c8dec02df54fa67f40a6f243ad8c830c9c4332c0df53ca5e5d7d3ad5f',
        'adbar/trafilatura e90b0ef51ab026fdb905fb6c5b3c84dd3d784fd5',
        'mozilla/readability ab4027a8b37669745016869a37a504727992b2ba',
        'postlight/parser e8ba7ece291efa4d915d50dd4deeec17d54359f2' ],
    [ html_forms_forums_shops_pages => \&html_forms_forums_shops_pages,
        '757fe3ef417efb5bb29d02dec111cc1f788751bd3f2547b1a911d4d171c8c033',
        'TeamHG-Memex/Formasaurus a5ffcec391be3abb0c5136aad2ccefe65f7b5a5f',
        'TeamHG-Memex/autopager 990e480bee9f780088db05e7586b2b84e255abeb' ],
    [ html_mdn_archived_pages => \&html_mdn_archived_pages,
        '648a8ecdeb49a5c5b533eac796e07301fe746be0928bdd2a3dfb124baca3ac28',
        'mdn/archived-content b0aa15f42b0b53e790dc175ae8914b61460593a8' ],
    [ trackawesomelist_md => \&trackawesomelist_md,
        'd9f6634dd35887fdcdbc40e00d521d0c46caf5cb0a4ffe3bb0dc5c817f167999',
        'trackawesomelist/trackawesomelist'
            . ' a777c3cf573bf850327366d0c8fbc78d2845821e' ],
    [ reddit_submissions => \&reddit_submissions,
        '2d39ef1519c824d947beb0bc4ec4fe397fd7348a016ad7b7b2513d066b512d8b',
        'umbrae/reddit-top-2.5-million'
            . ' d0efcade504b8ed735a48ddc2b15552fa924c9d9' ],
    [ words_paths => \&words_paths,
        '04be30894136d16178b27ef43549820edf2e7fefb1baddd07d701cc61f7ec81a',
        $words ],
    [ words_turn => \&words_turn,
        '94cbce8c0096d2b72723afea2bc7a3e42cecffc7107bd97f468447b74095e9ce',
        $words ],
    [ made_tokens => \&made_tokens,
        '6ba1e9d8d5b8f3c4ab04b8b5df6ec4603843dff0225705ea2a7e5d9d1a90013e' ],
    [ made_queries => \&made_queries,
        'e12436901c7569d0ed7d12dedc95642f37fe41468c99d33845ebf6dd16f0f5eb' ],
);

$| = 1;

my ($to, @wanted) = @ARGV;
my %wanted = map { $_ => 1 } @wanted;

die "usage: make.pl DIRECTORY [NAME...]\n" if !defined $to;

delete @wanted{ map { $_->[0] } @lists };
die "no such list: @{[ sort keys %wanted ]}\n" if %wanted;

make_path($to);

my ($bytes, $sum, $pack);            # of the list that is being made
my $failed = 0;

for my $list (@lists) {
    my ($name) = @$list;

    next if @wanted && !grep { $_ eq $name } @wanted;

    if (-e "$to/$name.txt.xz") {
        print "$name is there\n";

    } else {
        eval { $ENV{CORPORA} ? copied(@$list) : made(@$list); 1 }
            or $failed++, print STDERR "$name: $@";
    }
}

exit($failed ? 1 : 0);


sub made
{
    my ($name, $code, $pinned, @from) = @_;

    my $file = "$to/$name.txt.xz";
    my @sources = map {
        my ($repository, $commit, $history) = split ' ', $_;
        Source->new($repository, $commit, "$to/.git",
            history => defined $history);
    } @from;

    ($bytes, $sum) = (0, Digest::SHA->new(256));

    open $pack, '|-:raw', "xz -6 -T0 >'$file.new'" or die "xz: $!";
    $code->(@sources);
    close $pack or die "xz failed\n";

    checked($name, $pinned, $sum->hexdigest) or do {
        unlink "$file.new";
        die "not made\n";
    };

    rename "$file.new", $file or die "$file: $!\n";
    $_->forget for @sources;
    print "$name: $bytes bytes\n";
}


# A finished list is the user's: if it is another one, that is reported.

sub copied
{
    my ($name, undef, $pinned) = @_;

    my $from = "$ENV{CORPORA}/$name.txt.xz";

    open my $fh, '-|:raw', 'xz', '-dc', $from or die "xz: $!";
    my $got = Digest::SHA->new(256)->addfile($fh)->hexdigest;
    close $fh or die "$from cannot be read\n";

    checked($name, $pinned, $got);
    copy($from, "$to/$name.txt.xz.new")
        && rename "$to/$name.txt.xz.new", "$to/$name.txt.xz"
        or die "$to/$name.txt.xz: $!\n";
    print "$name: copied\n";
}


sub checked
{
    my ($name, $pinned, $got) = @_;

    return 1 if $got eq $pinned;

    print STDERR "$name: sha256 is $got, that of the pinned list $pinned\n";
    return 0;
}


sub put
{
    for my $url (@_) {
        my $line = "$url\n";

        $bytes += length $line;
        $sum->add($line);
        print $pack $line or die "xz: $!\n";
    }
}


# --- the lists ----------------------------------------------------------


# popular pages and the requests that they make

sub brave_sitelist
{
    my ($s) = @_;

    put(grep { $_ ne '' } split /\n/, $s->file('data/test/sitelist.txt'));
}


sub tweetfeed_iocs
{
    my ($s) = @_;

    $s->each_file('', qr{^\d{4}/.*\.csv$}, sub {
        csv($_[1], sub {
            my (undef, undef, $type, $url) = @_;

            put($url) if ($type // '') eq 'url' && $url =~ m{^https?://};
        });
    });
}


sub zhihu_hot_daily
{
    my ($s) = @_;

    $s->each_file('raw', qr/\.json$/, sub {
        put($_[1] =~ /"url":\s*"([^"]*)"/g);
    });
}


# Half of the registered domains (the last two labels of the host), by CRC-32.

sub eot2024_A
{
    my ($s) = @_;
    my %in;

    $s->each_file('seed-lists/sitemap-url-seeds', qr/\.txt$/, sub {
        for my $url (split /\n/, $_[1]) {
            $url =~ s/\r$//;

            my ($host) = $url =~ m{^https?://([^/]*)}i or next;

            $host = lc $host;
            $host =~ s/^.*@//;
            $host =~ s/:\d+$//;
            $host = $1 if $host =~ /([^.]+\.[^.]+)$/;

            put($url) if $in{$host} //= crc32($host) % 2 == 0;
        }
    });
}


sub crc32
{
    my $crc = 0xffffffff;

    for my $byte (unpack 'C*', $_[0]) {
        $crc ^= $byte;
        $crc = $crc >> 1 ^ ($crc & 1 ? 0xedb88320 : 0) for 1 .. 8;
    }

    return $crc ^ 0xffffffff;
}


# alphagov.txt has the version of each file.

sub alphagov_old_urls
{
    my ($s) = @_;

    open my $fh, '<', dirname(__FILE__) . '/alphagov.txt' or die $!;
    my @files = map { [ split ' ' ] } grep { !/^#/ } <$fh>;

    $s->each_blob(\@files, sub {
        csv($_[1], sub {
            put(grep { m{^https?://} } map { s/[\t\r\n]//gr } @_);
        });
    });
}


sub trackawesomelist_md
{
    my ($s) = @_;

    $s->each_file('', qr/\.md$/, sub {
        for my $link (markdown_links($_[1])) {
            if ($link =~ m{^/}) {
                $link =~ s{^/content/}{/};
                $link =~ s{README\.md$}{};
                $link = "https://www.trackawesomelist.com$link";
            }

            put($link);
        }
    });
}


sub reddit_submissions
{
    my ($s) = @_;

    $s->each_file('data', qr/\.csv$/, sub {
        my $column;

        csv($_[1], sub {
            if (!defined $column) {
                ($column) = grep { $_[$_] eq 'url' } 0 .. $#_;
                return;
            }

            my $url = $_[$column] // return;

            $url =~ s/[\r\n\t]//g;
            $url =~ s/^ +| +$//g;
            put($url =~ s/&amp;/&/gr) if $url =~ m{^https?://\S+$};
        });
    });
}


# Pages of trafilatura have their address in a table, or none; others have
# that which they give themselves.  Those in fixtures/ of postlight/parser have
# the front page of the host for which they are named.

sub html_news_blogs_pages
{
    my ($trafilatura, $readability, $parser) = @_;

    my $table = decode_json($trafilatura->file('tests/evaldata.json'));
    my %address = map { $table->{$_}{file} => $_ }
        grep { ref $table->{$_} } sort keys %$table;

    $trafilatura->each_file('tests', qr{^tests/(?:cache|eval)/}, sub {
        my ($path, $bytes) = @_;
        my ($name) = $path =~ m{([^/]+)$};
        my $text = decode($bytes);

        utf8::decode($name);

        my $base = $address{$name} // html_address($text);

        $base = undef if defined $base && $base !~ /^https?:/;
        put(html_links($text, $base));
    });

    $readability->each_file('test/test-pages', qr{/source\.html$}, sub {
        my $text = decode($_[1]);

        put(html_links($text, html_address($text)));
    });

    $parser->each_file('', qr{(?:^|/)fixtures/.*\.html$}, sub {
        my ($path, $bytes) = @_;
        my ($host) = $path =~ m{^fixtures/([^/]+?)(?:--.*)?(?:\.html$|/)};
        my $text = decode($bytes);

        put(html_links($text, defined $host ? "http://$host/"
            : html_address($text)));
    });
}


sub html_forms_forums_shops_pages
{
    my ($formasaurus, $autopager) = @_;

    my $index = decode_json($formasaurus->file('formasaurus/data/index.json'));

    $formasaurus->each_file('formasaurus/data/html', qr/\.html$/, sub {
        my ($path, $bytes) = @_;
        my ($key) = $path =~ m{^formasaurus/data/(.*)};

        put(html_links(decode($bytes), $index->{$key}{url}));
    });

    my %address;

    csv($autopager->file('autopager/data/data.csv'), sub {
        $address{$_[0]} = $_[1];
    });

    my $number = sub { $_[0][0] =~ /(\d+)\.html$/ ? $1 : 0 };

    $autopager->each_file('autopager/data/html', qr/\.html$/, sub {
        my ($path, $bytes) = @_;

        put(html_links(decode($bytes), $address{ $number->([ $path ]) }));
    }, order => sub { sort { $number->($a) <=> $number->($b) } @_ });
}


# The address of a page is its slug; a page without one has its path.

sub html_mdn_archived_pages
{
    my ($s) = @_;

    $s->each_file('files', qr{/(?:index|raw)\.html$}, sub {
        my ($path, $bytes) = @_;
        my ($locale, $slug) = $path =~ m{^files/([^/]+)/(.*)/};
        my $text = decode($bytes, 'utf-8');

        utf8::decode($slug);
        $locale =~ s/-(\w+)$/-\U$1/;

        if ($text =~ s/^---\n(.*?)\n---\n//s) {
            $slug = $1 if $1 =~ /^slug: *(.*?)\s*$/m;
            $slug =~ s/^(["'])(.*)\1$/$2/;
        }

        put(html_links($text,
            "https://developer.mozilla.org/$locale/docs/$slug"));
    });
}


# The most frequent words of subtitles; those that are ASCII are left out.

sub words
{
    my ($s, @languages) = @_;

    return map {
        my $file = $_ eq 'ja' ? 'ja_full' : "${_}_50k";
        my @words = map { /^(\S+) / ? $1 : () }
            split /\n/, $s->file("content/2018/$_/$file.txt");

        [ grep { /[\x80-\xff]/ } @words ];
    } @languages;
}


sub words_paths
{
    my ($s) = @_;

    Shapes->new(1, \&put)->words_paths(400_000,
        words($s, qw(ar bg el fa he ja ka ko ru th uk zh_cn)));
}


# before the second model is learnt

sub words_turn
{
    my ($s) = @_;

    Shapes->new(2, \&put)->words_queries(345_000, 158_000,
        words($s, qw(ar he ru)));
}


sub made_tokens { Shapes->new(4, \&put)->tokens(400_000) }

sub made_queries { Shapes->new(5, \&put)->queries(400_000) }
