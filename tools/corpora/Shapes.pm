package Shapes;

# Lists of URLs that are made, not found: shapes that public lists have too
# few of.  A list depends on its seed alone: draws are of integers.
#
#     my $shapes = Shapes->new(1, \&put);          # put(url) takes each URL
#     $shapes->tokens(400_000);
#     $shapes->words_queries(345_000, 158_000, \@russian, \@hebrew);
#
# All hosts are below .example.  Core Perl only.

use strict;
use warnings;

use MIME::Base64 qw(encode_base64);

my @letters = ('A' .. 'Z', 'a' .. 'z', 0 .. 9, '-', '_');


sub new
{
    my ($class, $seed, $put) = @_;

    return bless { x => $seed, put => $put }, $class;
}


# below n: the upper bits of Knuth's MMIX generator

sub _draw
{
    my ($self, $n) = @_;

    use integer;

    $self->{x} = $self->{x} * 6364136223846793005 + 1442695040888963407;

    return (($self->{x} >> 33) & 0x7fffffff) % $n;
}


sub _of { return $_[1][ $_[0]->_draw(scalar @{ $_[1] }) ] }


# one of a list, most frequent first: each power of two of ranks is as likely

sub _frequent
{
    my ($self, $list) = @_;

    my $powers = 0;
    $powers++ while 1 << $powers <= @$list;

    my $rank;

    do {
        my $first = 1 << $self->_draw($powers);
        $rank = $first + $self->_draw($first);
    } while $rank > @$list;

    return $list->[ $rank - 1 ];
}


sub _hex
{
    my ($self, $n) = @_;

    return join '', map { sprintf '%x', $self->_draw(16) } 1 .. $n;
}


sub _base64
{
    my ($self, $n) = @_;

    return join '', map { $self->_of(\@letters) } 1 .. $n;
}


sub _escaped { return $_[0] =~ s/([^A-Za-z0-9])/sprintf '%%%02X', ord $1/ger }


# one to four words of UTF-8, percent-encoded

sub _phrase
{
    my ($self, $words, $between) = @_;

    return join $between,
        map { _escaped($self->_frequent($words)) } 0 .. $self->_draw(4);
}


# Paths of words, under hosts of words that are not ASCII: of each language a
# list of words.

sub words_paths
{
    my ($self, $n, @languages) = @_;
    my @hosts;

    for my $words (@languages) {
        push @hosts, [ grep {
            my $text = $_;
            utf8::decode($text) && $text =~ /^\p{L}{3,15}$/
        } @$words ];
    }

    for (1 .. $n) {
        my $l = $self->_draw(scalar @languages);
        my $words = $languages[$l];
        my $url = 'https://' . ($self->_draw(4) ? 'www.' : '')
            . $self->_frequent($hosts[$l]) . '.example/';

        $url .= _escaped($self->_frequent($words)) . '/'
            for 1 .. $self->_draw(3);
        $url .= $self->_phrase($words, '_');
        $url .= '.html' if !$self->_draw(3);

        $self->{put}->($url);
    }
}


# What is searched for, at one host for each language; after so many URLs the
# query has two more arguments.

sub words_queries
{
    my ($self, $n, $turn, @languages) = @_;

    for my $i (1 .. $n) {
        my $l = $self->_draw(scalar @languages);

        $self->{put}->("https://find$l.example/search?q="
            . $self->_phrase($languages[$l], '+')
            . ($i <= $turn ? '' : '&list_rank=' . (1 + $self->_draw(50))
                . '&source=top_' . $self->_draw(4)));
    }
}


# ids and signatures, in hex and in base 64

sub tokens
{
    my ($self, $n) = @_;

    my @files = qw(jpg webp js css mp4);

    my @shapes = (
        sub {
            my $hex = $self->_hex(40);
            return sprintf 'cdn%d.example/assets/%s/%s/%s.%s',
                $self->_draw(8), substr($hex, 0, 2), substr($hex, 2, 2), $hex,
                $self->_of(\@files);
        },
        sub { 'drive.example/file/d/1' . $self->_base64(32) . '/view' },
        sub { 'video.example/watch?v=' . $self->_base64(11) },
        sub {
            return 'lists.example/u/' . join('-',
                map { $self->_hex($_) } 8, 4, 4, 4, 12) . '/unsubscribe';
        },
        sub {
            return 'sign.example/verify?user=' . $self->_draw(1_000_000)
                . '&token=' . $self->_base64(43) . '%3D';
        },
        sub {
            my $text = sprintf '{"id":%d,"page":%d}', $self->_draw(10_000_000),
                $self->_draw(100);
            return 'app.example/open?state=' . _escaped(encode_base64($text,
                ''));
        },
        sub {
            return sprintf 'img%d.example/%s/%dx%d/%s.png', $self->_draw(4),
                $self->_hex(8), 100 * (1 + $self->_draw(8)),
                100 * (1 + $self->_draw(8)), $self->_hex(32);
        },
    );

    $self->{put}->('https://' . $self->_of(\@shapes)->()) for 1 .. $n;
}


# filters of shops, threads and searches of forums

sub queries
{
    my ($self, $n) = @_;

    my @names = map {
        join '', map { $self->_of([ qw(ba ro ki ten mar lo sa vi del nor) ]) }
            0 .. 1 + $self->_draw(2)
    } 1 .. 3_000;
    my %filters = (
        brand => \@names,
        color => [ qw(black white red blue green grey brown pink) ],
        size => [ 36 .. 46, qw(xs s m l xl) ],
        material => [ qw(cotton wool leather linen steel oak) ],
        price_from => [ map { 10 * $_ } 1 .. 20 ],
        price_to => [ map { 50 * $_ } 5 .. 40 ],
    );
    my @sorts = qw(price_asc price_desc newest popularity);
    my @filters = sort keys %filters;

    my @shapes = (
        sub {
            return sprintf 'www.shop%d.example/%s?%spage=%d&sort=%s',
                $self->_draw(200), $self->_frequent(\@names),
                join('', map {
                    $self->_draw(3) ? ''
                        : "$_=" . $self->_frequent($filters{$_}) . '&'
                } @filters), 1 + $self->_draw(30), $self->_of(\@sorts);
        },
        sub {
            return sprintf 'shop%d.example/product.php?id_product=%d&'
                . 'id_category=%d&utm_source=%s', $self->_draw(200),
                $self->_draw(100_000), $self->_draw(300),
                $self->_of([ qw(mail feed ads) ]);
        },
        sub {
            return sprintf 'forum%d.example/viewtopic.php?f=%d&t=%d&start=%d',
                $self->_draw(300), $self->_draw(40), $self->_draw(200_000),
                15 * $self->_draw(20);
        },
        sub {
            return sprintf 'board%d.example/showthread.php?tid=%d&pid=%d'
                . '&mode=threaded', $self->_draw(300), $self->_draw(60_000),
                $self->_draw(900_000);
        },
        sub {
            return sprintf 'forum%d.example/search.php?keywords=%s&terms=all'
                . '&author=&sr=posts&sk=t&sd=d&sid=%s', $self->_draw(300),
                join('+', map { $self->_frequent(\@names) }
                    0 .. $self->_draw(3)), $self->_hex(32);
        },
    );

    $self->{put}->('http://' . $self->_of(\@shapes)->()) for 1 .. $n;
}


1;
