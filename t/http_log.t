#!/usr/bin/perl

# A start and a stop each leave a line in the error log: what was loaded and
# from where, and what the next start reads.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $t = UrlStore::Test->new(daemon => 1, log => 'notice')->run(<<'CONF');
urlstore_zone u 16m path=%%DIR%%/store;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

my $where = qr/urlstore_zone "u", "\S+\/store"/;

ok($t->ready(write => 1), 'a new store');
$t->post('/add', join('', map { "http://a.test/$_\n" } 1 .. 100),
    'Content-Type' => 'text/plain');
$t->stop;

my $closed = qr/closed: 100 ids; the next start reads (\d+) bytes of journal$/m;
my ($bytes) = $t->error_log =~ /\[notice\] .* $where: $closed/;

cmp_ok($bytes // 0, '>', 0, 'a stop says what the next start reads')
    or diag($t->error_log);

$t->start;
ok($t->ready(write => 1), 'started again');
my $loaded = "loaded, and writable: 100 ids, epoch 1; from no snapshot, "
    . "$bytes bytes of journal";

# a line that is written after the store is ready

ok(wait_until(5, sub { $t->error_log =~ /\[notice\] .* $where: $loaded/ }),
    'a start says what it has read') or diag($t->error_log);
