#!/usr/bin/perl

# The house style, as far as a program can see it: nginx's for C, and what
# goes for every text file of the project.  Prints FILE:LINE: what is wrong;
# exit code 1 if something is.
#
#     tools/check-style.pl [FILE...]        all files of the project without
#
# clang-format cannot express this style (declarations first and aligned, two
# blank lines between functions), so it checks and does not format.

use strict;
use warnings;

my @files = @ARGV ? @ARGV : grep { !/\.patch$/ } split /\0/,
    `tools/files.sh`;

my $faults = 0;
my ($file, @line);


sub fault
{
    my ($n, $what) = @_;

    print "$file:$n: $what\n";
    $faults++;
}


sub text
{
    my $wide = $file =~ /\.(?:md|html|ya?ml|json|txt|svg|csv|lock|go|mk)$/;
    my $tabs = $file =~ m{(?:^|/)Makefile$|\.(?:mk|go|md)$|^debian/rules$};

    for my $n (1 .. @line) {
        local $_ = $line[$n - 1];

        fault($n, 'trailing blank') if /[ \t]$/;
        fault($n, 'carriage return') if /\r/;
        fault($n, 'tab') if /\t/ && !$tabs;
        fault($n, 'longer than 80 columns') if !$wide && columns($_) > 80;
        fault($n, 'left to do') if /\b(?:TODO|FIXME)\b/
            && $file !~ m{check-style};
        fault($n, 'a path of one machine') if m{(?<![\w./])/(?:work|home)/\w};
    }

    fault(scalar @line, 'blank lines at the end') if @line
        && $line[-1] eq '';
}


sub columns
{
    my ($s) = @_;

    1 while $s =~ s/^([^\t]*)\t/$1 . ' ' x (8 - length($1) % 8)/e;
    utf8::decode($s);

    return length $s;
}


# C with its comments and strings blanked out, line by line

sub code
{
    my $all = join "\n", @line;

    $all =~ s{ ( /\* .*? \*/ ) | ( "(?:\\.|[^"\\\n])*" )
               | ( '(?:\\.|[^'\\\n])+' ) }
             { blank($1 // $2 // $3) }gsex;

    return split /\n/, $all, -1;
}


sub blank
{
    my ($s) = @_;

    my $q = substr $s, 0, 1;

    return $s =~ s/[^\n]/ /gr if $q eq '/';
    return $q . 'x' x (length($s) - 2) . $q;
}


sub c_source
{
    my @code = code();
    my $start = 0;

    $start++ while $start < @line && $line[$start] eq '';

    # the header of a pair may say it for both

    my $pair = $file =~ s/\.c$/.h/r;

    fault($start + 1, 'the file does not begin with what it is for')
        if ($line[$start] // '') !~ m{^/\*} && ($pair eq $file || !-e $pair);

    my $blanks = 0;

    for my $n (1 .. @code) {
        local $_ = $code[$n - 1];

        if ($line[$n - 1] eq '') {
            $blanks++;
            fault($n, 'more than two blank lines') if $blanks == 3;
            next;
        }

        fault($n, '// comment') if m{//};
        fault($n, "no blank after \"$1\"")
            if /\b(if|for|while|switch|return)\(/ && !/^\s*#/;
        fault($n, 'blank inside of parentheses') if /\( \S/ && !/\( [();]/
            || m{[^\s;()] \)};
        fault($n, '"else" without braces') if !/^\s*#/
            && /\belse\b(?:\s*[^\s{i\\]|$)/;
        fault($n, '"else" on a line without "}"') if /^\s*else\b/;
        fault($n, '"{" of a function at the end of its line')
            if /^\w.*\)\s*\{$/ && !/^(?:#|extern)/;

        # the end of a function, and what comes before the next thing

        if ($blanks < 2 && $n - 2 - $blanks >= 0
            && $code[$n - 2 - $blanks] eq '}' && !/^#/)
        {
            fault($n, 'less than two blank lines after a function');
        }

        braces($n, \@code) if /^\s+(?:\} else )?(?:if|for|while) \(/;
        definition($n, \@code) if $_ eq '{';

        $blanks = 0;
    }
}


# the statement below if, for and while is a block

sub braces
{
    my ($n, $code) = @_;

    my ($depth, $text) = (0, '');

    for my $i ($n .. ($n + 30 < @$code ? $n + 30 : scalar @$code)) {
        my $s = $code->[$i - 1];

        $s =~ s/^\s*(?:\} else )?(?:if|for|while) // if $i == $n;

        for my $ch (split //, $s) {
            $depth++ if $ch eq '(';
            $depth-- if $ch eq ')';
            $text .= $ch if $depth == 0 && $ch ne ')';
        }

        if ($depth == 0) {
            my $rest = $text =~ s/\s//gr;

            $rest = $code->[$i] =~ s/\s//gr if $rest eq '' && $i < @$code;

            # "while" that ends a do block

            return if $code->[$n - 1] =~ /^\s*\} while/ || $rest =~ /^[\\{;]/;

            fault($n, 'a statement without braces');
            return;
        }
    }
}


# the name of a function begins its line, below its type

sub definition
{
    my ($n, $code) = @_;

    my $i = $n - 1;

    $i-- while $i > 0 && $code->[$i - 1] =~ /^\s+\S/;

    my $s = $code->[$i - 1];

    fault($i, 'the type of a function stands on a line of its own')
        if $s =~ /\(/ && $s !~ /^\w+\(/ && $s !~ /^[A-Z_]+\(/;
}


for (@files) {
    $file = $_;

    next if !-f $file || -l $file || -B $file;
    next if $file =~ /(?:^LICENSE|package-lock\.json|\.svg$|\.h\.in|\.svg)$/
        || $file =~ m{^(?:t/data|fuzz/seeds)/|(?:^|/)(?:vectors|corpus)/};

    open my $fh, '<:raw', $file or die "$file: $!";
    local $/;
    my $all = <$fh>;
    close $fh;

    next if $all eq '';

    @line = split /\n/, $all, -1;

    if ($line[-1] eq '') {
        pop @line;

    } else {
        fault(scalar @line, 'no newline at the end');
    }

    text();

    if ($file =~ /\.[ch]$/) {
        c_source();
    }
}

exit($faults ? 1 : 0);
