#!/usr/bin/perl

# Nothing is left of URLs that were erased at a primary's replicas either: with
# a directory or without, stopped or cut off meanwhile, or made of a copy from
# before.

use strict;
use warnings;

use lib 't/lib';

use UrlStore::Corpora;
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


# of one that has not heard of it: not ''

sub left { join ' ', @{ $_[0]->get('/erase/1')->json->{left} // ['all'] } }


$primary->ready(write => 1);

my $lines = corpus('reddit_submissions', 12000);

while (my @some = splice @$lines, 0, 500) {
    $primary->post('/add?brief=1', join("\n", @some), @text);
}

my %id;

for (split /\n/, $primary->get('/urls?limit=100000')->{body}) {
    my ($id, $url) = split /\t/;
    $id{$url} = $id;
}

my @urls = sort { $id{$a} <=> $id{$b} } keys %id;
my @gone = @urls[map { 17 * $_ } 1 .. 300];
my %gone = map { $_ => 1 } @gone;
my @kept = grep { !$gone{$_} } @urls;

cmp_ok(@kept, '>', 9000, 'real URLs');

my @first = qw(directory memory stopped cut);

ok(start($_), "a replica: $_") for @first;

for (@replicas{@first}) {
    $_->post('/seen', join("\n", @gone), @text);
    $_->get("/url/$id{$gone[7]}");
}

traces_of(\@gone, [], $primary->pid);

for my $name (@first) {
    is(traces("pid:$_"), 1, "$name: process $_ has them")
        for $replicas{$name}->worker_pids;
}

$replicas{stopped}->stop;
is(system('cp', '-a', "$replicas{stopped}{dir}/u", "$replicas{copy}{dir}/u"),
    0, 'one is stopped, and copied');
$proxy->mode('refuse');

is($primary->post('/erase', join("\n", @gone), @text)->{status}, 202,
    'erased');

ok(wait_until(5 * WITHIN, sub { left($primary) eq '' }), 'gone at the primary');


# --- each of them says so, and so it is

traces_of(\@gone, \@kept, $primary->pid);

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

$proxy->mode('pass');
ok(level($primary, $replicas{cut}), 'the one that was cut off is back');
clean('cut');

for my $name (qw(stopped copy)) {
    ok(start($name), "$name: begins with its directory");
    clean($name);
}


# --- another store, whose LSNs are less

$primary->stop;
$primary->run(zone('path=%%DIR%%/v'));
$primary->ready(write => 1);
$primary->post('/add?brief=1', join("\n", @urls[0 .. 499]), @text);

my $t = $replicas{memory};

ok(level($primary, $t), 'another store');

@gone = @urls[10 .. 19];
@kept = (@urls[0 .. 9], @urls[20 .. 499]);
$t->post('/seen', join("\n", @gone), @text);
is($primary->post('/erase', join("\n", @gone), @text)->{status}, 202,
    'erased');
ok(wait_until(5 * WITHIN, sub { left($t) eq 'workers' }),
    'its workers are to be wiped, as if there had been no other store');
traces_of(\@gone, \@kept, $primary->pid);
clean('memory');

$_->stop for $primary, values %replicas;

done_testing();
