#!/usr/bin/perl

# The library: what make install puts where, and examples/embed.c, built with
# nothing else and run; public headers are valid C++.

use strict;
use warnings;

use File::Temp qw(tempdir);
use Test::More;

my $root = tempdir(CLEANUP => 1);
my $out = `make --no-print-directory install prefix=$root/usr 2>&1`;

is($?, 0, 'make install') or diag($out);

$ENV{PKG_CONFIG_PATH} = "$root/usr/lib/pkgconfig";
chomp(my $flags = `pkg-config --cflags --libs urlstore`);
chomp(my $version = `pkg-config --modversion urlstore`);

like(slurp('src/us_version.h'), qr/"\Q$version\E"/, 'its version');

$out = `gcc -Wall -Wextra -Werror -o $root/embed examples/embed.c $flags 2>&1`;
is($?, 0, 'the example is built') or diag($out);

my $run = "$root/embed $root/d http://example.com/a/b";

is(`$run ../c HTTP://www.EXAMPLE.com:80/c#top mailto:x`, lines(<<'END'), 'new');
0 | new | http://example.com/a/b
1 | new | http://example.com/c
1 | seen | http://example.com/c
- | invalid | scheme
END

is(`$run ../d`, lines(<<'END'), 'and seen the next time');
0 | seen | http://example.com/a/b
2 | new | http://example.com/d
END

like(`$root/usr/bin/urlstore verify $root/d`, qr/3 ids read back, 0 deleted/,
    'the command reads the directory');

# the example at the top of the header: its lines begin with five spaces

my $header = slurp('src/life/us_embed.h');
my ($example) = $header =~ /\A(.*?)^ \* The directory/ms;

open my $fh, '>', "$root/header.c" or die $!;
print $fh "#include <life/us_embed.h>\n#include <url/us_normalize.h>\n",
    "int\nmain(void)\n{\n", $example =~ s/^(?! \*     ).*\n//gmr
    =~ s/^ \* //gmr, "return (int) n;\n}\n";
close $fh;

my $warn = '-std=gnu11 -Wall -Werror';
$out = `gcc $warn -o $root/header $root/header.c $flags 2>&1`;
is($out, '', 'the example of us_embed.h is built');

is(system("cd $root && ./header") >> 8, 2, '  and run');
is(`$root/usr/bin/urlstore dump $root/urls`, lines(<<'END'), '  adds its URLs');
0 | http://example.com/a
1 | http://example.com/b
END

my @headers = split /\n/, `cd $root/usr/include/urlstore && find . -name '*.h'`;

for my $header (sort map { s{^\./}{}r } @headers) {
    my $cc = "echo '#include <$header>' | g++ -x c++ -std=c++11 -Wall -Werror"
        . " -fsyntax-only $flags - 2>&1";

    is(`$cc`, '', "C++: $header");
}

done_testing();


# columns are separated by tabs

sub lines
{
    my ($text) = @_;

    return $text =~ s/ \| /\t/gr;
}


sub slurp
{
    my ($file) = @_;

    local $/;
    open my $fh, '<', $file or die "$file: $!";

    return scalar <$fh>;
}
