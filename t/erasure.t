#!/usr/bin/perl

# Nothing is left of URLs that were erased: neither in the files of the
# directory, nor in the memory of any process, also not in the zone and in the
# model that was learnt from them; and what they shared with others is there.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;
use UrlStore::Traces;

use constant WITHIN => 8;                       # s

my $t = UrlStore::Test->new(workers => 2, log => 'notice')->run(<<"CONF");
keepalive_timeout 1s;
urlstore_zone u 64m path=%%DIR%%/u erase_within=@{[WITHIN]}s;
urlstore_zone m 16m erase_within=@{[WITHIN]}s;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /m/ { urlstore_api m; }
}
CONF

my @text = ('Content-Type' => 'text/plain');

$t->ready(write => 1);

my ($urls, $site) = traces_fill($t);
my @ids = map { 17 * $_ } 1 .. 300;
my @gone = @$urls[@ids];
my @all_gone = (@gone, @$site);
my %gone = map { $_ => 1 } @all_gone;
my @kept = grep { !$gone{$_} } @$urls;

$t->post('/m/add?brief=1', join("\n", @$urls[0 .. 2999]), @text);

traces_of(\@all_gone, [], $t->pid);


# requests of all kinds have them

$t->get('/seen?url=' . uri_escape($_)) for @gone[0 .. 20];
$t->get("/url/$_") for @ids[0 .. 20];
$t->post('/seen', join("\n", @gone), @text);
$t->get('/prefix?url=' . uri_escape($gone[5]));
$t->get('/normalize?url=' . uri_escape($gone[6]));

traces_found("pid:$_", "process $_ has them") for $t->worker_pids;

my $r = $t->post('/erase', join("\n", @gone), @text);
is($r->{status}, 202, 'erased');
is($t->post('/m/erase', join("\n", @gone), @text)->{status}, 202, '  twice');
is($t->post('/erase?site=' . TRACES_SITE, '', @text)->{status}, 202,
    '  and a site');

sub left
{
    my ($below, $n) = @_;

    return join ' ', @{ $t->get("$below/erase/" . ($n // 1))->json->{left} };
}

is(left(''), 'memory workers files', 'what is left');
is(left('/m'), 'memory workers', '  in a zone in memory');

my $began = time;
my $end = time + 10 * WITHIN;

while (time < $end && (left('') || left('', 2) || left('/m'))) {
    select undef, undef, undef, .2;
}

is(left(''), '', 'nothing is left');
is(left('', 2), '', '  of the site');
is(left('/m'), '', '  in a zone in memory');
diag('after ' . (time - $began) . ' s');


traces_of(\@all_gone, \@kept, $t->pid);
traces_none("$t->{dir}/u", 'no file of the directory has a piece of one');
traces_none("pid:$_", "nor has process $_") for $t->worker_pids;
traces_none('pid:' . $t->pid, 'nor has the master');

my $seen = 0;

for (my @rest = @kept; my @some = splice @rest, 0, 1000; ) {
    $seen += () = $t->post('/seen', join("\n", @some), @text)->{body}
        =~ /\tseen\t/g;
}

is($seen, @kept, 'all others are there');
$t->stop;

done_testing();
