#!/usr/bin/perl

# Nothing is left of URLs that were erased at a primary's replicas either: with
# a directory or without, stopped or cut off meanwhile, or made of a copy from
# before.

use strict;
use warnings;

use lib 't/lib';

use UrlStore::Proxy;
use UrlStore::Replica;
use UrlStore::Test;
use UrlStore::Traces;

use constant WITHIN => 8;                       # s

my @text = ('Content-Type' => 'text/plain');
my $primary = UrlStore::Test->new(log => 'notice')->run(zone('path=%%DIR%%/u'));
my $proxy = UrlStore::Proxy->new($primary->port);
my %replicas = map {
    $_ => UrlStore::Test->new(log => 'notice')
} qw(directory memory stopped cut copy);

sub zone
{
    my ($options) = @_;

    return <<"CONF";
keepalive_timeout 1s;
urlstore_zone u 64m erase_within=@{[WITHIN]}s $options;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location = /log { urlstore_log u; }
}
CONF
}


sub start
{
    my ($name) = @_;
    my $t = $replicas{$name};

    my $port = $name eq 'cut' ? $proxy->port : $primary->port;

    $t->run(zone("follow=http://127.0.0.1:$port/"
        . ($name eq 'memory' ? '' : ' path=%%DIR%%/u')));

    return level($primary, $t);
}


# what is left of all erasures; of one that has not heard of them: not ''

sub left
{
    my ($t) = @_;
    my $all = $t->get('/erase')->json->{erasures};
    my %left = map { $_ => 1 } map { @{ $_->{left} } } @{ $all // [] };

    return @{ $all // [] } ? join ' ', sort keys %left : 'all';
}


$primary->ready(write => 1);

my ($urls, $site) = traces_fill($primary);
my @ids = map { 17 * $_ } 1 .. 300;
my @gone = @$urls[@ids];
my %gone = map { $_ => 1 } @gone, @$site;
my @kept = grep { !$gone{$_} } @$urls;

my @first = qw(directory memory stopped cut);

ok(start($_), "a replica: $_") for @first;

for (@replicas{@first}) {
    $_->post('/seen', join("\n", @gone), @text);
    $_->get("/url/$ids[7]");
}

traces_of([keys %gone], [], $primary->pid);

for my $name (@first) {
    traces_found("pid:$_", "$name: process $_ has them")
        for $replicas{$name}->worker_pids;
}

$replicas{stopped}->stop;
is(system('cp', '-a', "$replicas{stopped}{dir}/u", "$replicas{copy}{dir}/u"),
    0, 'one is stopped, and copied');
$proxy->mode('refuse');

is($primary->post('/erase', join("\n", @gone), @text)->{status}, 202,
    'erased');
is($primary->post('/erase?site=' . TRACES_SITE, '', @text)->{status}, 202,
    '  and a site');

ok(wait_until(5 * WITHIN, sub { left($primary) eq 'away' }),
    'gone at the primary, and at the replicas that are connected');


# --- each of them says so, and so it is

traces_of([keys %gone], \@kept, $primary->pid);

sub clean
{
    my ($name) = @_;
    my $t = $replicas{$name};

    ok(wait_until(5 * WITHIN, sub { left($t) eq '' }), "gone at $name");

    traces_none("$t->{dir}/u", '  no file has a piece of one')
        if -d "$t->{dir}/u";
    traces_none("pid:$_", "  nor has process $_") for $t->worker_pids;
    traces_none('pid:' . $t->pid, '  nor has its master');
    is(differs($primary, $t), '', '  it is as the primary');
}

clean($_) for qw(directory memory);


# that one is away, for one with a copy of its directory

$proxy->mode('pass');
ok(level($primary, $replicas{cut}), 'the one that was cut off is back');
clean('cut');

ok(start('copy'), 'copy: begins with its directory');
ok(wait_until(5, sub { left($primary) =~ /replicas/ }), '  the primary waits');
clean('copy');
ok(wait_until(5, sub { left($primary) eq 'away' }), '  not for that one');

$primary->reload;
ok(wait_until(5 * WITHIN, sub { left($primary) eq 'away' }),
    '  nor after a reload, which forgets none');

ok(start('stopped'), 'stopped: begins with its directory');
clean('stopped');
ok(wait_until(5, sub { left($primary) eq '' }), 'the primary waits for nobody');


# --- another store, whose LSNs are less

$primary->stop;
$primary->run(zone('path=%%DIR%%/v'));
$primary->ready(write => 1);
$primary->post('/add?brief=1', join("\n", @$urls[0 .. 499]), @text);

my $t = $replicas{memory};

ok(level($primary, $t), 'another store');

@gone = @$urls[10 .. 19];
@kept = (@$urls[0 .. 9], @$urls[20 .. 499]);
$t->post('/seen', join("\n", @gone), @text);
is($primary->post('/erase', join("\n", @gone), @text)->{status}, 202,
    'erased');
ok(wait_until(5 * WITHIN, sub { left($t) eq 'workers' }),
    'its workers are to be wiped, as if there had been no other store');
traces_of(\@gone, \@kept, $primary->pid);
clean('memory');
ok(wait_until(5 * WITHIN, sub { left($primary) eq '' }), 'nor is it elsewhere');


# --- what is no replica

like($primary->get("/log?$_")->{body}, qr/invalid \\"replica\\"|keeps/, $_)
    for qw(replica=a replica=01 keeps=2);

$_->stop for $primary, values %replicas;

done_testing();
