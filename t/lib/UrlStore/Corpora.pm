package UrlStore::Corpora;

# The URLs that tests and benchmarks read: those of real lists, as
# tools/corpus.sh finds them, and generated ones.
#
#     my $urls = corpus('eot2024_A', 60_000);     # the first lines
#     my $all = corpus('eot2024_A');              # the whole list
#     my $more = generated(200_000, 7);           # by build/generate
#     my $some = drawn(corpus_command('eot2024_A'), 1000);    # different ones
#
# The samples in t/data/corpora are the heads of the whole lists: with a
# number of lines, every machine reads the same ones.
#
# Core Perl only.

use strict;
use warnings;

use base 'Exporter';

use Cwd qw(abs_path);
use File::Basename qw(dirname);

our @EXPORT = qw(
    corpus corpus_command corpus_file corpus_names corpus_sampled announce
    generated generator drawn
);

my $top = abs_path(dirname(__FILE__) . '/../../..');


# the path of a list; dies if there is none

sub corpus_file
{
    my ($name) = @_;

    return _finder('path', $name);
}


# the names of all lists

sub corpus_names { return split /\n/, _finder('names') }


# a shell command that prints the lines of a list

sub corpus_command
{
    my ($name) = @_;

    return "$top/tools/corpus.sh cat $name";
}


# so many different canonical URLs of a command's output, drawn by a generator
# that is the same everywhere; all, if there are no more

sub drawn
{
    my ($command, $n) = @_;

    open my $in, '-|', "$command"
        . " | $top/build/urlstore dedup -q --normalize crawler" or die $!;
    my @lines = <$in>;
    close $in;

    my $seed = 1;

    for my $i (0 .. $n - 1) {
        last if $i >= @lines;
        $seed = ($seed * 1103515245 + 12345) & 0x7fffffff;
        my $j = $i + int($seed / 2147483648 * (@lines - $i));
        @lines[$i, $j] = @lines[$j, $i];
    }

    splice @lines, $n if @lines > $n;

    return \@lines;
}


# those of these lists that are read from the samples

sub corpus_sampled
{
    return grep { corpus_file($_) =~ m{^\Q$top\E/t/data/} } @_;
}


# The first line of a benchmark: the lists, whether they are whole, and how
# many generated URLs come to them (0 for none).

sub announce
{
    my ($generated, @names) = @_;
    my @from = @names ? _finder('about', @names) : ();

    push @from, "$generated generated URLs" if $generated;
    print 'URLs: ', join('; ', @from), "\n\n";
}


# the first n lines of a list (all without n), as bytes; dies if there are
# fewer

sub corpus
{
    my ($name, $n) = @_;

    return _lines($n, 1, "$top/tools/corpus.sh", 'cat', $name);
}


# n URLs, all different, of a seed (1)

sub generated
{
    my ($n, $seed) = @_;

    return _lines($n, 0, split ' ', generator($n, $seed));
}


# a shell command that prints them

sub generator
{
    my ($n, $seed) = @_;

    return "$top/build/generate -n $n -s " . ($seed // 1);
}


sub _finder
{
    open my $fh, '-|', "$top/tools/corpus.sh", @_ or die "corpus.sh: $!";
    local $/;
    my $out = <$fh> // '';
    close $fh or die "tools/corpus.sh @_ failed\n";
    $out =~ s{\n\z}{};

    return $out;
}


# The lines of a command.  It may be cut off by a reader that has enough.

sub _lines
{
    my ($n, $cut, @command) = @_;

    open my $fh, '-|:raw', @command or die "$command[0]: $!";

    my @lines;

    while (my $line = <$fh>) {
        chomp $line;
        push @lines, $line;
        last if $n && @lines == $n;
    }

    close $fh or $n && @lines == $n && $cut or die "@command failed\n";
    die "@command: " . @lines . " lines, $n are needed\n" if $n && @lines < $n;

    return \@lines;
}


1;
