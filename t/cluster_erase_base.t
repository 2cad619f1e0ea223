#!/usr/bin/perl

# base=, of a directory whose journal has the records of an erasure: its server
# was killed before a snapshot took their place.  They come into the log with
# the base, and the primary makes another one.

use strict;
use warnings;

use lib 't/lib';

use UrlStore::Nodes;
use UrlStore::Postgres;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

need_fault_disk();

my $pg = UrlStore::Postgres->new->start;
my @text = ('Content-Type' => 'text/plain');
my $gone = 'http://a.test/' . join '', map { ('a' .. 'z', 0 .. 9)[rand 36] }
    1 .. 300;
my @kept = map { "http://h$_.test/" } 1 .. 100;

my $old = UrlStore::Test->new(disk => 1)->run(<<'CONF');
urlstore_zone u 16m path=%%DIR%%/u erase_within=2s;
server { listen 127.0.0.1:%%PORT%%; location / { urlstore_api u; } }
CONF

$old->allow_kills;
$old->ready(write => 1);
$old->post('/add', join("\n", @kept), @text);

# bytes of its record, in the journal and elsewhere

my $before = files();

$old->post('/add', $gone, @text);
ok(wait_until(10, sub { length files() > length($before) + 200 }), 'added');

my $piece = substr files(), -100, 40;

$old->disk('slow 4000');
is($old->post('/erase', $gone, @text)->{status}, 202, 'erased');
ok(wait_until(20, sub { left($old) !~ /memory/ }), 'not in memory any more');
like(left($old), qr/files/, '  but in files');
$old->kill_all;
ok(index(files(), $piece) >= 0, '  that a kill has left');

my $new = UrlStore::Test->new(globals =>
    "load_module $UrlStore::Test::POSTGRES;");

$new->allow(qr/the log .*is tried again/, qr/the log does not confirm/);
spew($new->dir . '/log', $pg->conninfo);


$new->run(<<"CONF");
urlstore_cluster c %%DIR%%/map.json;
urlstore_zone u 16m cluster=c shard=0 node=n0 lease=1s replicas=0
    erase_within=2s replicate=postgres:\@%%DIR%%/log base=@{[$old->dir]}/u;
server { listen 127.0.0.1:%%PORT%%; location / { urlstore_api u; }
    location = /cluster { urlstore_cluster_admin c; } }
CONF

UrlStore::Nodes::map_of($new);
ok(wait_until(20, sub { left($new) =~ /^(?!.*\blog)/ }), 'not in the log')
    or diag(left($new));
is(index(join('', map { pack 'H*', $_ } $pg->dump =~ /\\\\x(\w+)/g), $piece),
    -1, '  as a dump shows');
is($new->stats->{rebases}, 1, '  by one base');

my $seen = () = $new->post('/seen', join("\n", @kept), @text)->{body}
    =~ /\tseen\t/g;

is($seen, @kept, 'all others are there');


sub files { return join '', map { slurp($_) } glob $old->dir . '/u/journal.*' }


# of one that does not answer so far: all

sub left
{
    my $r = $_[0]->get('/erase/1');

    return $r->{status} == 200 ? join ' ', @{ $r->json->{left} }
        : 'memory files log';
}
