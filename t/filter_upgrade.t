#!/usr/bin/perl

# A filter in a file through binary upgrades (USR2): both masters use it, what
# one side adds the other has seen, an upgrade that is taken back or killed
# loses nothing, and the last one to end marks the file clean.

use strict;
use warnings;

use lib 't/lib';
use Time::HiRes qw(sleep time);
use UrlStore::Test;

my $t = UrlStore::Test->new(workers => 2, daemon => 1,
    globals => 'worker_shutdown_timeout 5s;')->run(<<'CONF');
urlstore_filter f 1m capacity=200k error=0.001 path=%%DIR%%/filter;
server {
    listen 127.0.0.1:%%PORT%%;
    keepalive_requests 100000;
    location / {
        urlstore_api f;
        add_header X-Pid $pid;
    }
}
CONF

my (@answered, %by);
my $n = 0;


# adds a hundred more, each batch on its own connection

sub add
{
    for (1 .. 10) {
        my @part = map { 'http://site' . $n++ % 97 . ".test/$n" } 1 .. 10;
        my $answer = $t->client->request('POST', '/add',
            join('', map { "$_\n" } @part));

        if ($answer && $answer->{status} == 200) {
            push @answered, @part;
            $by{$answer->{headers}{'x-pid'}}++;
        }
    }
}


# of all that was answered, what is not seen; asked of several workers

sub missing
{
    my $missing = 0;

    for (1 .. 8) {
        my $answer = $t->client->request('POST', '/seen',
            join('', map { "$_\n" } @answered));
        $missing += @answered if $answer->{status} != 200;
        $missing += () = $answer->{body} =~ /\tunseen\t/g;
    }

    return $missing;
}


# starts the new master beside the old one: its pid

sub upgrade
{
    my $old = $t->pid;
    kill 'USR2', $old;

    wait_until(10, sub {
        my $new = $t->pid;
        return $new && $new != $old && $t->worker_pids($new) == 2;
    }) or return;

    return $t->pid;
}


sub gone
{
    my ($pid) = @_;

    return wait_until(10, sub { !kill 0, $pid });
}


# the mark in the file

sub clean
{
    open my $f, '<:raw', $t->dir . '/filter/filter' or die "filter: $!";
    seek $f, 56, 0;
    read $f, my $mark, 8;

    return unpack 'Q', $mark;
}


add();

for my $round (1 .. 3) {
    my $old = $t->pid;
    my $new = upgrade();

    ok($new, "upgrade $round: the new master starts");
    %by = ();
    add() for 1 .. 5;
    cmp_ok(scalar(keys %by), '>', 2, 'workers of both add');
    is(missing(), 0, 'and all know all of it');

    kill 'QUIT', $old;
    ok(gone($old), 'the old one ends');
    is(clean(), 0, 'the file is in use');
    $t->{pid} = $new;
    is(missing(), 0, 'nothing is lost');
    add();
}

# taken back

my $old = $t->pid;
my $new = upgrade();
add();
kill 'QUIT', $new;
ok(gone($new), 'an upgrade is taken back');
ok(wait_until(10, sub { ($t->pid // 0) == $old }), 'the old master stays');
is(clean(), 0, 'the file is in use');
is(missing(), 0, 'nothing is lost');
add();

# the old master and its workers are killed

$new = upgrade();
add();
kill 'KILL', $old, $t->worker_pids($old);
ok(gone($old), 'the old side is killed');
$t->{pid} = $new;
add();
is(missing(), 0, 'nothing is lost');

ok($t->stop, 'stop');
is(clean(), 1, 'the last one has marked the file clean');
ok($t->start, 'start');
is(missing(), 0, scalar(@answered) . ' URLs, all there');
cmp_ok(scalar(@answered), '>', 1500, 'enough of them');
