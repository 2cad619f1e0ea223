#!/usr/bin/perl

# make install and make uninstall: what is where, that it works, and that
# nothing is left; and that the build says which library is missing.

use strict;
use warnings;

use lib 't/lib';
use File::Find qw(find);
use File::Temp qw(tempdir);
use UrlStore::Test;

my $root = tempdir(CLEANUP => 1) . '/a root';
my $make = "make --no-print-directory DESTDIR='$root' prefix=/usr";
my $module = "$root/usr/lib/nginx/modules/ngx_http_urlstore_module.so";
my $link = tempdir(CLEANUP => 1);
my $doc = "$root/usr/share/doc/urlstore";

mkdir $root;

# what another program has installed there stays

mkdir "$root/$_" for 'usr', 'usr/share', 'usr/share/doc',
    'usr/share/doc/other';

my $out = `$make install 2>&1`;

is($?, 0, 'make install') or diag($out);
like($out, qr{load_module /usr/lib/nginx/modules/ngx_http_urlstore_module.so;},
    'and the line for nginx.conf');

is(`sed -n '1s/.*(\\(.*\\)).*/urlstore \\1/p' debian/changelog`,
    `'$root/usr/bin/urlstore' --version`, 'a version, and of the packages');
is(`sed -n 's/^  version: "\\(.*\\)"/urlstore \\1/p' front/openapi.yaml`,
    `'$root/usr/bin/urlstore' --version`, '  and of the interface');
is(`echo HTTP://A.example/x/../y | '$root/usr/bin/urlstore' normalize`,
    "http://a.example/y\n", 'the command works');
ok(-e "$doc/$_", $_) for qw(README.md LICENSE docs/install.md
    conf/urlstore.conf);
ok(-s "$root/usr/share/$_", $_) for qw(man/man1/urlstore.1
    man/man1/urlstore-dedup.1 bash-completion/completions/urlstore
    zsh/site-functions/_urlstore);

# the log in PostgreSQL is a module of its own: only it needs libpq

my $postgres = $module =~ s/urlstore_module/urlstore_postgres_module/r;

unlike(`readelf -d '$module'`, qr/libpq/, 'the module needs no libpq');
like(`readelf -d '$postgres'`, qr/NEEDED.*libpq/, 'that of PostgreSQL does');

{
    # without the blank, for the configuration

    symlink $module, "$link/module.so" or die "symlink: $!";
    local $ENV{US_MODULE} = "$link/module.so";

    my $t = UrlStore::Test->new(judge => 0);
    my ($rc, $said) = $t->check('urlstore_zone u 8m;');

    is($rc, 0, 'nginx loads the module') or diag($said);
}

$out = `$make uninstall 2>&1`;
is($?, 0, 'make uninstall') or diag($out);

my @left;

find(sub { push @left, $File::Find::name if -f || /urlstore/ }, $root);
is("@left", '', 'nothing is left');
ok(-d "$root/usr/share/doc/other", 'but what was there');

$out = `$make uninstall 2>&1`;
is($?, 0, 'once more') or diag($out);


# libraries

{
    local $ENV{PKG_CONFIG_LIBDIR} = '/nowhere';
    my $said = `tools/libraries.sh check 2>&1`;

    is($? >> 8, 1, 'libraries that are missing');
    like($said, qr/^library zlib is missing: .*\(Debian: zlib1g-dev\)$/m,
        'are named, with their package');
}

# packages, for a user who cannot install them

{
    my $bin = tempdir(CLEANUP => 1);

    for my $name (qw(bash grep flock mktemp tail rm dpkg-query apt-get)) {
        my ($path) = grep { -x } map { "$_/$name" } qw(/usr/bin /bin);

        symlink $path, "$bin/$name" if $path;
    }

    UrlStore::Test::spew("$bin/id", "#!$bin/bash\necho 1000\n");
    chmod 0755, "$bin/id";

    my $install = "PATH=$bin $bin/bash tools/packages.sh install";
    my $said = `$install no-such-package 2>&1`;

    is($? >> 8, 1, 'a package that is missing');
    is($said, "installing: no-such-package\nOnly root can install them: "
        . "apt-get install --no-install-recommends no-such-package\n",
        'and no root: the command that installs it');
    is(`$install dpkg 2>&1`, '',
        'nothing is missing: nothing is said');
}

done_testing();
