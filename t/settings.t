#!/usr/bin/perl

# Parameters of a zone with data in it: a change is applied, or refused with a
# reason; at a reload and at a restart, in memory and with path=.  Marks can be
# added, and none disappears.  What the log says of a start.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep);

use UrlStore::Test;

my $t = UrlStore::Test->new(workers => 2);
my $dir = "$t->{dir}/data";
my $urlstore = "$UrlStore::Test::TOP/build/urlstore";
my @text = ('Content-Type' => 'text/plain');

$t->allow(qr/cannot change/, qr/were stored with/, qr/the master process is/,
    qr/to be made/);

sub conf
{
    my (%o) = @_;

    my $memory = $o{memory} // 'marks=a,b';
    my $disk = $o{disk} // 'marks=a,b';
    my $size = $o{size} // '16m';

    return <<"CONF";
urlstore_zone m $size $memory;
urlstore_zone d $size path=%%DIR%%/data snapshot=64k $disk;
server {
    listen 127.0.0.1:%%PORT%%;
    location /m/ { urlstore_api m; }
    location /d/ { urlstore_api d; }
}
CONF
}


sub ready
{
    return ok($t->ready(below => '/d', write => 1), shift);
}


sub marked
{
    my ($zone, $mark) = @_;

    return $t->get("/$zone/urls?mark=$mark")->{body} =~ s/\t.*//gr =~ s/\n/ /gr;
}


# a reload that is refused for this reason; what was there goes on

sub refused
{
    my ($conf, $re, $what) = @_;

    my $from = length $t->error_log;
    my $old = slurp("$t->{dir}/nginx.conf");

    ok(!$t->reload($conf), "refused: $what");
    like(substr($t->error_log, $from), qr/\[emerg\].*$re/, '  readably');
    spew("$t->{dir}/nginx.conf", $old);
}


$t->run(conf());
ready('ready');

ok(wait_until(10, sub { $t->error_log
    =~ /\[notice\].*"d".*data": a new store begins, epoch 1$/m }),
    'the log says that it begins');

for my $zone (qw(m d)) {
    $t->post("/$zone/add", join('', map { "http://x.test/$_\n" } 0 .. 99),
        @text);
    $t->post("/$zone/mark/a", "1\n2\n", @text);
    $t->post("/$zone/mark/b", "3\n", @text);
}

# --- marks are added at a reload

ok($t->reload(conf(memory => 'marks=a,b,c', disk => 'marks=a,b,c')),
    'one mark more');
is_deeply($t->get('/m/stats')->json->{marks},
    [ 'a', 'b', 'c' ], '  in /stats, of the zone in memory');

ok(wait_until(10, sub {
    my $r = $t->post('/d/mark/c', "4\n", @text);

    return $r->{status} == 200 ? 1
        : $r->{status} == 503 && $r->{headers}{'retry-after'} ? 0 : die;
}), '  and of the one with path=, when the manifest has it');

like(slurp("$dir/manifest"), qr/^store marks a,b,c$/m, '  which it has');
is_deeply($t->get('/d/stats')->json->{marks},
    [ 'a', 'b', 'c' ], '  in /stats');
like($t->post('/m/mark/c', "4\n", @text)->{body}, qr/^4\tset\t/, 'set');

for my $zone (qw(m d)) {
    is(join(',', map { marked($zone, $_) } qw(a b c)), '1 2 ,3 ,4 ',
        "$zone: each is where it was");
}

# --- and do not disappear

for my $marks ('a,b', 'a,b,x', 'a,c,b', 'x,a,b,c', '') {
    my $option = $marks ? "marks=$marks" : '';

    refused(conf(memory => $option, disk => 'marks=a,b,c'),
        qr/"m": its "marks" cannot change so: number \d is "\w"/,
        "marks \"$marks\" in memory");
    refused(conf(memory => 'marks=a,b,c', disk => $option),
        qr/"d": its "marks" cannot change so: number \d is "\w"/,
        "marks \"$marks\" with path=");
}

# --- other parameters

for my $case ([ 'sites=on', qr/its "sites" cannot change.*stop nginx/ ],
    [ 'huge=on', qr/its "huge" cannot change.*stop nginx/ ],
    [ 'profile=whatwg', qr/its "profile" cannot change.*stored otherwise/ ],
    [ 'www=keep', qr/its "www" cannot change.*stored otherwise/ ],
    [ 'schemes=first', qr/its "schemes" cannot change.*stored otherwise/ ],
    [ 'mode=lookup', qr/its "mode" cannot change.*stop nginx/, 'disk' ],
    [ 'sync=always', qr/its "sync" cannot change.*stop nginx/, 'disk' ])
{
    my ($option, $re, @only) = @$case;

    for my $zone (@only ? @only : qw(memory disk)) {
        refused(conf(memory => 'marks=a,b,c', disk => 'marks=a,b,c',
            $zone => "marks=a,b,c $option"), $re, "$option, $zone");
    }
}

refused(conf(memory => 'marks=a,b,c', disk => 'marks=a,b,c', size => '32m'),
    qr/its\ size\ cannot\ change\ from\ 16777216\ to\ 33554432\ while\ nginx
        \ runs;\ restart\ nginx,\ which\ loads\ the\ URLs/x, 'SIZE');

ok($t->reload(conf(memory => 'marks=a,b,c', disk => 'marks=a,b,c scrub=2s')
    =~ s/snapshot=64k/snapshot=1m/r), 'snapshot and scrub are applied');
is(marked('m', 'a'), '1 2 ', 'all is there');

# --- the manifest cannot be written

chmod 0500, $dir;

ok($t->reload(conf(memory => 'marks=a,b,c', disk => 'marks=a,b,c,d')),
    'a mark, and the disk refuses');
ok(wait_until(10, sub { $t->error_log =~ /could not be added: .*tried/ }),
    '  which is logged');

my $r = $t->post('/d/mark/d', "5\n", @text);
is($r->{status}, 503, '  refused for now');
like($r->{body}, qr/the mark \\?"d\\?" is being added/, '  readably');
ok($r->{headers}{'retry-after'}, '  with Retry-After');
is($t->get('/d/urls?mark=d')->{status}, 503, '  for a list, too');
is($t->post('/d/mark/e', "5\n", @text)->{status}, 404,
    '  another is not there');

chmod 0700, $dir;

ok(wait_until(20, sub {
    $t->post('/d/mark/d', "5\n", @text)->{status} == 200
}), 'added as soon as it can be');

# --- killed: a restart has all of them, and refuses to lose one

$t->kill_all;
is(system("$urlstore verify $dir >/dev/null"), 0, 'verified');

for my $marks ('a,b,c', 'a,b,d,c', '') {
    my ($rc, $out) = $t->check(conf(disk => $marks ? "marks=$marks" : ''));

    is($rc, 1, "nginx -t refuses marks \"$marks\"");
    like($out, qr/stored with marks "a,b,c,d".*marks can only be added/,
        '  readably');
}

# sites=: counted from then on, or not any more

$t->conf(conf(disk => 'marks=a,b,c,d sites=on', size => '32m'));
$t->start;
ready('with another SIZE and sites=on');
is(join(',', map { marked('d', $_) } qw(a b c d)), '1 2 ,3 ,4 ,5 ', 'marks');
is($t->get('/d/site/x.test')->json->{urls}, 100, 'the site is counted');
like($t->error_log, qr/\[notice\].*data":[ ]loaded,[ ]and[ ]writable:[ ]100[ ]
    ids,[ ]epoch[ ]1;[ ]from[ ]no[ ]snapshot,[ ]\d+[ ]bytes[ ]of[ ]journal,
    [ ]in[ ]\d+[ ]ms$/mx, 'the log says what was loaded');
ok($t->stop, 'stopped');

$t->conf(conf(disk => 'marks=a,b,c,d'));
$t->start;
ready('without it');
is($t->get('/d/site/x.test')->json->{first_id} // 0, 0, 'the site is there');
ok(!exists $t->get('/d/site/x.test')->json->{urls}, '  and not counted');

# another profile: a new directory

my $old = $t->get('/d/urls?limit=100')->{body};
ok($t->stop, 'stopped');
system("$urlstore dump $dir | $urlstore import --profile whatwg $t->{dir}/new "
    . '2>/dev/null');
is(`$urlstore dump $t->{dir}/new`, $old, 'a dump in a new directory');
