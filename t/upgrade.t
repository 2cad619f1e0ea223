#!/usr/bin/perl

# The upgrade matrix of docs/operations.md ("Another nginx"), row by row: what a
# reload, a binary upgrade (USR2) and a restart do when the module's file, the
# formats on disk, the keys of URLs or the file of a filter are others.
#
# US_PREVIOUS: an older module for the same nginx, from which is upgraded; by
# default the present one (make test-upgrade FROM=COMMIT).

use strict;
use warnings;

use lib 't/lib';
use File::Copy qw(copy);
use UrlStore::Test;

my $t = UrlStore::Test->new(workers => 1, daemon => 1,
    globals => 'worker_shutdown_timeout 5s;');
my $module = $t->{module};
my $previous = $ENV{US_PREVIOUS} || $module;
my $file = "$t->{dir}/module.so";
my $data = "$t->{dir}/data";
my $conf = <<'CONF';
urlstore_zone mem 8m;
urlstore_zone disk 8m path=%%DIR%%/data sync=100ms marks=visited,hot;
urlstore_filter f 1m capacity=100k error=0.01 path=%%DIR%%/filter;
server {
    listen 127.0.0.1:%%PORT%%;
    location /mem/  { urlstore_api mem; }
    location /disk/ { urlstore_api disk; }
    location /f/    { urlstore_api f; }
}
CONF


# --- the module's file is replaced

if ($module ne '') {
    install($previous);
    $t->{module} = $file;
}

$t->run($conf);
ok($t->ready(below => '/disk', write => 1), 'ready');

my $added = add(0, 100);

if ($module ne '') {
    install($module);
    $t->reload or diag('no reload');

    like(maps($t->pid), qr/\Q$file\E \(deleted\)/,
        'a reload: the old module stays');
    is(known(100), $added, '  and all that was stored');
    is($t->get('/mem/stats')->json->{urls}, 1, '  in memory, too');
}

is(upgrade(), '', 'a binary upgrade');

unlike(maps($t->pid), qr/\Q$file\E \(deleted\)/, '  has the new module')
    if $module ne '';

is(known(100), $added, '  each id has its URL, with path=');
is($t->get('/mem/stats')->json->{urls}, 0, '  memory begins anew');
like(seen('/f'), qr/seen/, '  the filter knows what it knew');
$added .= add(100, 10);

ok($t->stop && $t->start, 'a restart');
ok($t->ready(below => '/disk', write => 1), '  ready');
is(known(110), $added, '  each id has its URL');
like(seen('/f'), qr/seen/, '  the filter knows what it knew');


# --- data that are newer, or have other keys; a filter of another format

refused(sub { s/^urlstore data \d+/urlstore data 99/m },
    qr/format version 99, this program reads versions up to \d/,
    'a newer format');
refused(sub { s/^store norm crawler\/1/store norm crawler\/2/m },
    qr/\bwere stored with\b.*"urlstore rekey" changes/, 'other keys');
refused(sub { s/^store norm crawler/store norm whatwg/m },
    qr/\bwere stored with\b/, 'another profile');

my $filter = slurp("$t->{dir}/filter/filter");
my $other = $filter;

substr($other, 8, 1) = "\2";
refuses("$t->{dir}/filter/filter", $other, qr/urlstore_filter "f".*\bfilter\b/,
    'a filter of another format');

done_testing();


sub install
{
    my ($from) = @_;

    # as packages do: a mapped file is replaced, never written to

    copy($from, "$file.new") && rename("$file.new", $file) or die "copy: $!";
}


sub maps
{
    my ($pid) = @_;

    return slurp("/proc/$pid/maps");
}


# the same URLs to all three; their lines of /url

sub add
{
    my ($from, $n) = @_;

    my @n = $from .. $from + $n - 1;
    my $urls = join '', map { "http://h$_.example/p\n" } @n;

    $t->post("/$_/add", $urls) for qw(disk f);
    $t->post('/mem/add', "http://h.example/\n");

    return join '', map { "$_\thttp://h$_.example/p\n" } @n;
}


sub known
{
    my ($n) = @_;

    return $t->post('/disk/url', join("\n", 0 .. $n - 1),
        Accept => 'text/plain')->{body};
}


sub seen
{
    my ($at) = @_;

    return $t->get("$at/seen?url=http://h7.example/p")->{body};
}


# USR2, then QUIT to the old master; what went wrong

sub upgrade
{
    my $old = $t->pid;
    my $new;

    kill 'USR2', $old;

    wait_until(10, sub {
        $new = $t->pid;
        return $new && $new != $old && $t->worker_pids($new) == 1;
    }) or return 'no new master';

    kill 'QUIT', $old;
    wait_until(10, sub { !kill 0, $old }) or return 'the old one stays';

    $t->{pid} = $new;

    return $t->ready(below => '/disk', write => 1) ? '' : 'not ready';
}


# Changes the manifest, with its checksum.

sub manifest
{
    my ($change) = @_;

    local $_ = slurp("$data/manifest") =~ s/^crc32c.*//mrs;

    $change->();
    $_ .= sprintf "crc32c %08x\n", crc32c(0, $_);
    spew("$data/manifest", $_);

    return $_;
}


sub refused
{
    my ($change, $why, $name) = @_;

    my $was = slurp("$data/manifest");
    my $changed = manifest($change);

    isnt($changed, $was, "$name, on disk");
    spew("$data/manifest", $was);
    refuses("$data/manifest", $changed, $why, $name);
}


# A file has this text: nginx does not start, a running one is not replaced,
# and what is there stays as it is.

sub refuses
{
    my ($path, $text, $why, $name) = @_;

    my $was = slurp($path);
    my $old = $t->pid;
    my $ended = qr/new binary process \d+ exited with code 1/;

    $t->allow(qr/\[emerg\].*$why/);

    spew("$path.new", $text);
    own("$path.new");
    rename "$path.new", $path or die "rename: $!";

    my ($rc, $said) = $t->check;
    isnt($rc, 0, "$name: nginx -t");
    like($said, $why, '  says why');

    my $before = () = $t->error_log =~ /$ended/g;

    kill 'USR2', $old;
    ok(wait_until(10, sub { $before < (() = $t->error_log =~ /$ended/g) }),
        '  a binary upgrade ends at once');
    is($t->pid, $old, '  the old master stays');
    is($t->get('/disk/health')->{status}, 200, '  the service goes on');
    is(slurp($path), $text, '  the file is as it was');

    spew("$path.new", $was);
    own("$path.new");
    rename "$path.new", $path or die "rename: $!";
}


sub own
{
    my ($path) = @_;

    return if $> != 0;

    my ($uid, $gid) = (getpwnam('nobody'))[2, 3];
    chown $uid, $gid, $path, glob("$path/*");
}
