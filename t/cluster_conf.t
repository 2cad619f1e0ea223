#!/usr/bin/perl

# urlstore_cluster: the file of a map at the configuration.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use UrlStore::Test;

my $t = UrlStore::Test->new;

my $zone = zone_conf('16m');
my $cluster = 'urlstore_cluster crawl %%DIR%%/map.json;';


sub map_text
{
    my (%o) = @_;

    return JSON::PP->new->canonical->encode({
        cluster => 'c' x 32, version => 1, key => 'site',
        norm => 'crawler/1 unicode=15.0 www=first',
        shards => { 0 => { uuid => '0' x 32, nodes => ['us_0'] } },
        slots => [['0-4095', 0]], %o,
    });
}


sub refused
{
    my ($conf, $why, $what) = @_;

    my ($rc, $out) = $t->check($conf . $zone);

    isnt($rc, 0, $what);
    like($out, $why, '  with its reason');
}


my ($rc, $out) = $t->check($cluster . $zone);
is($rc, 0, 'no file: the first map is written later');
unlike($out, qr/warn/, '  which is no fault of a shard');

($rc, $out) = $t->check($cluster . 'server { listen 127.0.0.1:%%PORT%%; '
    . 'location / { urlstore_route crawl; } }');
is($rc, 0, 'nor does a router need one');
like($out, qr/\[warn\].*cluster "crawl" has no map so far: there is no file /,
    '  but for a warning');

spew($t->dir . '/map.json', map_text());
($rc, $out) = $t->check($cluster . $zone);
is($rc, 0, 'a map');
unlike($out, qr/warn/, '  without a warning');

refused("$cluster$cluster", qr/duplicate urlstore_cluster "crawl"/, 'twice');
refused('urlstore_cluster a/b %%DIR%%/map.json;', qr/invalid name "a\/b"/,
    'a bad name');
refused('urlstore_cluster crawl %%DIR%%;', qr/the map "[^"]+": read\(\) failed/,
    'a directory');

spew($t->dir . '/map.json', map_text(slots => [['0-4094', 0]]));
refused($cluster, qr/map\.json": .*4095/, 'a slot without an owner');

spew($t->dir . '/map.json', '');
refused($cluster, qr/map\.json": /, 'an empty file');

spew($t->dir . '/map.json', map_text() . ' ' x (1024 * 1024));
refused($cluster, qr/map\.json": .*1048576/, 'a file that is too long');
