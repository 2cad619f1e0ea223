package UrlStore::Vectors;

# Vectors of other projects (t/data/vectors) and what build/urlstore makes of
# them.
#
#     my @rows = vectors('whatwg-toascii');
#     my @urls = normalize('whatwg', { url => 'http://x', base => '..' }, ..);
#
# An answer is the URL, or "!" and the reason.  Core Perl only.

use strict;
use warnings;

use base 'Exporter';

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempfile);
use JSON::PP ();

our @EXPORT = qw(vectors_dir vectors normalize table printable);

my $top = abs_path(dirname(__FILE__) . '/../../..');
my $json = JSON::PP->new->ascii;


sub vectors_dir
{
    return "$top/t/data/vectors";
}


# comments (plain strings) are left out; a lone surrogate becomes U+FFFD

sub vectors
{
    my ($name) = @_;

    my $file = vectors_dir() . "/$name.json";

    open my $in, '<:raw', $file or die "$file: $!\n";
    my $text = do { local $/; <$in> };

    my $high = qr/\\u[dD][89abAB][0-9a-fA-F]{2}/;
    my $low = qr/\\u[dD][c-fC-F][0-9a-fA-F]{2}/;

    $text =~ s/($high$low)|$high|$low/$1 \/\/ '\\ufffd'/ge;

    return grep { ref } @{JSON::PP->new->utf8->decode($text)};
}


sub normalize
{
    my ($profile, @rows) = @_;

    my ($fh, $name) = tempfile(UNLINK => 1);

    print $fh map {
        $json->encode({ url => $_->{url}, base => $_->{base} }) . "\n"
    } @rows;

    close $fh;

    my @out = map { $json->decode($_) }
        `$top/build/urlstore normalize --json --profile $profile < $name`;

    my $code = $? >> 8;

    die "urlstore normalize: exit code $code\n" if $? & 127 || $code > 1;
    die @out . ' answers for ' . @rows . " rows\n" if @out != @rows;

    return map { $_->{url} // "!$_->{error}" } @out;
}


# a tab-separated file of t/data: lines, "#" begins a comment

sub table
{
    my ($name) = @_;

    my $file = "$top/t/data/$name";

    open my $in, '<', $file or die "$file: $!\n";

    return map { chomp; [split /\t/, $_, -1] } grep { !/^(?:#|$)/ } <$in>;
}


# a string as the tables write it

sub printable
{
    my ($s) = @_;

    $s =~ s/([^\x21-\x7e]|\\)/sprintf '\x{%X}', ord $1/ge;

    return $s;
}

1;
