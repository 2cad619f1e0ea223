#!/usr/bin/perl

# A zone that is full restarts in the same SIZE, whatever it holds and however
# it ended; one that is too small says which SIZE is not, and changes nothing.
# t/stress/room.c does the same with many more kinds of stores.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use UrlStore::Test;

my @marks = map { "m$_" } 0 .. 15;


sub conf
{
    my ($size, $options) = @_;

    return zone_conf("$size path=%%DIR%%/data $options",
        'client_max_body_size 8m');
}


# short URLs, of hosts that come again and hosts that do not

sub urls
{
    my ($from, $n) = @_;

    return join '', map {
        "http://h" . ($_ % 3 ? $_ % 50 : $_) . ".test/" . ($_ * 7919) . "\n"
    } $from .. $from + $n - 1;
}


# adds until a whole batch is refused; every so often, what it has is deleted

sub fill
{
    my ($t, $from, $each) = @_;

    for (my $n = $from; ; $n += 2000) {
        my $r = $t->post('/add?brief=1', urls($n, 2000));

        is($r->{status}, 200, 'a batch') if $r->{status} != 200;

        my @new = $r->{body} =~ /^(\d+)\tnew/mg;
        my @full = $r->{body} =~ /\tfull/g;

        return $n if @full == 2000 - ($r->{body} =~ s/\tseen//g);

        next if !$each;

        $t->forget("/url/$_") for grep { $_ % $each == 0 } @new;
    }
}


sub state_of
{
    my ($t) = @_;

    my $s = $t->get('/stats')->json;

    return { map { $_ => $s->{$_} } qw(state urls deleted sites) };
}


for my $case (
    [ '3m', 'snapshot=16k sites=on', 60, 'stop', 1 ],
    [ '3m', 'snapshot=16k sites=off marks=' . join(',', @marks), 90,
        'kill', 1 ],
    [ '3m', 'snapshot=off sites=off marks=' . join(',', @marks), 0,
        'kill', 2 ],
) {
    my ($size, $options, $each, $end, $rounds) = @$case;

    my $t = UrlStore::Test->new(workers => 2)->run(conf($size, $options));
    my $name = "$size $options, $end";
    my $n = 0;

    ok($t->ready, "$name: ready");

    for my $round (1 .. $rounds) {
        $n = fill($t, $n, $each);

        for my $mark ($options =~ /marks/ ? @marks : ()) {
            $t->post("/mark/$mark", "0\n1\n");
        }

        my $was = state_of($t);

        $end eq 'kill' ? $t->kill_all : $t->stop;
        $t->start;

        ok($t->ready(within => 30), "$name: restarted, $was->{urls} URLs");
        is_deeply(state_of($t), $was, "$name: the same");
    }

    $t->stop;
}


# SIZE is too small: what suffices is said, and suffices

my $t = UrlStore::Test->new(workers => 2);
my $data = "$t->{dir}/data";

$t->run(conf('16m', 'snapshot=64k'));
ok($t->ready, 'ready');
$t->post('/add?brief=1', urls($_ * 5000, 5000)) for 0 .. 59;

my $was = state_of($t);
is($was->{urls}, 300_000, 'filled');
ok($t->stop, 'stopped');

my %files = map { $_ => slurp($_) } grep { !/readers|lock/ } glob("$data/*");

$t->allow(qr/\[emerg\].*SIZE is too small/);
$t->conf(conf('3m', 'snapshot=64k'));
$t->start;

ok(wait_until(20, sub { $t->get('/health')->json->{status} eq 'too-small' }),
    'too small');

my $r = $t->post('/seen', urls(0, 1));
is($r->{status}, 503, 'nothing is answered');
like($r->json->{detail}, qr/SIZE is too small for the data: \d+[km] suff/,
    'the reason');
my ($need) = $r->json->{detail} =~ /(\d+[km]) suffices/;
ok(wait_until(5, sub {
    $t->error_log =~ /\[emerg\].*SIZE is too small.*: \Q$need\E/
}), 'is logged');
is($t->post('/add', urls(0, 1))->{status}, 503, 'nothing is added');
is($t->get('/stats')->json->{state}, 'too-small', 'and so says /stats');
$t->stop;

for my $file (sort keys %files) {
    ok(slurp($file) eq $files{$file}, 'not touched: '
        . $file =~ s{.*/}{}r);
}

$t->conf(conf($need, 'snapshot=64k'));
$t->start;
ok($t->ready(within => 20), "$need suffices");
is_deeply(state_of($t), $was, 'the same');
is($t->get('/url/299999')->{status}, 200, 'the last one');
$t->stop;

done_testing();
