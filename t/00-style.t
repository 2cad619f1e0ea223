#!/usr/bin/perl

# The house style of all files, and the names that the module exports.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempfile);
use Test::More;

chdir abs_path(dirname(__FILE__) . '/..') or die $!;

is(`tools/check-style.pl`, '', 'house style');


# the reverse patches of `make regress` apply

is(join(' ', grep { system("git -c safe.directory='*' apply --check $_ 2>&1") }
    glob 't/regress/*.patch'), '', 'reverse patches apply');


# the checker sees each fault that it knows

my %bad = (
    'tab'                          => "int\nf(void)\n{\n\treturn 1;\n}\n",
    'trailing blank'               => "int  x; \n",
    'longer than 80'               => 'int  ' . 'x' x 80 . ";\n",
    'more than two blank lines'    => "int  x;\n\n\n\nint  y;\n",
    'less than two blank lines'    => "void\nf(void)\n{\n}\n\nint  y;\n",
    'a statement without braces'   => "void\nf(void)\n{\n    if (a)\n"
                                      . "        b();\n}\n",
    '// comment'                   => "int  x; // no\n",
    'no blank after "if"'          => "void\nf(void)\n{\n    if(a) {\n"
                                      . "        b();\n    }\n}\n",
    'the type of a function'       => "int f(void)\n{\n    return 1;\n}\n",
    'no newline at the end'        => "int  x;",
    '"else" without braces'        => "void\nf(void)\n{\n    if (a) {\n"
                                      . "        b();\n    } else\n"
                                      . "        c();\n}\n",
);

for my $what (sort keys %bad) {
    my ($fh, $name) = tempfile(SUFFIX => '.c', UNLINK => 1);
    print $fh "\n/*\n * what it is for\n */\n\n\n$bad{$what}";
    close $fh;

    like(`tools/check-style.pl $name`, qr/\Q$what\E/, "finds: $what");
}

my ($fh, $name) = tempfile(SUFFIX => '.c', UNLINK => 1);
print $fh <<'C';

/*
 * what it is for: "http://x" is no comment
 */


static int
f(const char *s)
{
    if (s == NULL || strcmp(s, "http://(") == 0
        || s[0] == '(')
    {
        return 1;
    }

    do {
        s++;
    } while (*s);

    for ( ;; ) {
        return 2;
    }
}
C
close $fh;
is(`tools/check-style.pl $name`, '', 'finds no fault in good code');


# the language of comments, messages and documents, as far as words show it:
# "tell" and "told" for return, report, record or state; "behind" for after or
# past

my @told = found(qr/\b(?:tell|told)/i);
my @behind = found(qr/\bbehind\b/i);

cmp_ok(scalar @told, '<', 20, '"tell" and "told"') or diag(join "\n", @told);
cmp_ok(scalar @behind, '<', 10, '"behind" stands for a place in space')
    or diag(join "\n", @behind);


SKIP: {
    my $so = 'build/ngx_http_urlstore_module.so';

    skip 'no module built', 1 if !-e $so;

    my @foreign = grep { !/^(?:us_|ngx_http_urlstore_)/ && !/^ngx_module/ }
        map { (split)[-1] } grep { / [A-TV-Z] / } `nm -D --defined-only $so`;

    is("@foreign", '', 'the module exports no foreign names');
}

done_testing();


# FILE:LINE of the lines of source and documents that match

sub found
{
    my ($re) = @_;

    my @found;

    for my $file (glob('src/*.[ch] src/*/*.[ch] docs/*.md docs/*/*.md'),
                  'README.md')
    {
        open my $fh, '<', $file or die "$file: $!";

        while (<$fh>) {
            push @found, "$file:$." if /$re/;
        }

        close $fh;
    }

    return @found;
}
