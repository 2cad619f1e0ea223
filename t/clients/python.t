#!/usr/bin/perl

# The Python package: typed for the oldest Python that it supports, and what
# it needs is what it says.  From threads and processes, and while workers are
# killed, each URL is returned as new to at least one caller.

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

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone calm 16m;
urlstore_zone kills 16m;
server {
    listen 127.0.0.1:%%PORT%%;
    location /calm/ { urlstore_api calm; }
    location /kills/ { urlstore_api kills; }
}
CONF

# built in a copy, for setuptools writes into the folder

system('cp', '-r', $dir, $t->dir . '/package');
my $pip = 'pip wheel -q --no-index --no-deps --no-build-isolation -w wheel';
my $wheel = `cd ${\ $t->dir} && { /usr/bin/python3 -m $pip ./package &&
    /usr/bin/python3 -m zipfile -l wheel/urlstore-*.whl; } 2>&1`;
my @files = sort map { m{([^/]+)$} } glob("$dir/urlstore/{*.py,py.typed}");

is(join(' ', sort $wheel =~ m{^urlstore/(\S+)}mg), "@files",
    'a wheel has all modules, and that they are typed') or diag($wheel);

my $store = 'http://127.0.0.1:' . $t->port;

# a process with more descriptors than select() has room for

($rc, $out) = run_python(qw(/usr/bin/python3 -B -c), <<'END', "$store/calm");
import os, resource, sys
from urlstore import Store
resource.setrlimit(resource.RLIMIT_NOFILE, (
    1200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1050)]
store = Store(sys.argv[1])
print(*(store.add("http://many.test/").status for _ in range(3)))
END

is($out, "new seen seen\n", 'a process with 1,050 open files');

my @threads = qw(/usr/bin/python3 -B test/threads.py);

($rc, $out) = run_python(@threads, "$store/calm");
is($out, "0 0\n", 'threads and processes: each URL is new to one caller');

# kills until it ends

my $killer = fork() // die "fork: $!";

if ($killer == 0) {
    for (1 .. 200) {
        my @pids = $t->worker_pids;
        kill 'KILL', $pids[rand @pids] if @pids;
        select undef, undef, undef, .05 + rand .1;
    }
    POSIX::_exit(0);
}

$t->allow_kills;
($rc, $out) = run_python(@threads, "$store/kills");
kill 'KILL', $killer;
waitpid $killer, 0;

like($out =~ s/^POST .* is tried again for .*\n//mgr, qr/^0 \d+$/,
    '... while workers are killed: to at least one');
note("URLs without a caller, and with several: $out");
