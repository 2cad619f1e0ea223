#!/usr/bin/perl

# The Python package: typed for the oldest Python that it supports, and what
# it needs is what it says.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $dir = "$UrlStore::Test::TOP/clients/python";


sub run_python
{
    my (@command) = @_;

    my $pid = open(my $fh, '-|') // die "fork: $!";

    if ($pid == 0) {
        chdir $dir;
        $ENV{PYTHONDONTWRITEBYTECODE} = 1;
        open STDERR, '>&', \*STDOUT;
        exec @command or POSIX::_exit(127);
    }

    local $/;
    my $out = <$fh> // '';
    close $fh;

    return ($? >> 8, $out);
}


my ($rc, $out) = run_python(qw(mypy --strict --cache-dir=/dev/null
    --python-version=3.9 urlstore));

is($rc, 0, 'mypy --strict for Python 3.9') or diag($out);


# -I -S: no other packages

($rc, $out) = run_python(qw(/usr/bin/python3 -I -S -c), <<'END');
import sys
sys.path.insert(0, '.')
import urlstore
print(urlstore.Store('http://127.0.0.1:1').health.__name__)
END

is($out, "health\n", 'the synchronous client needs the standard library only');
