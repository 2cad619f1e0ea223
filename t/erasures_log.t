#!/usr/bin/perl

# The audit of erasures, "erasures.log" in the directory: a line for each change
# of one, none twice, none missing after a kill, and no URL.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $t = UrlStore::Test->new(workers => 2, log => 'notice');
my @text = ('Content-Type' => 'text/plain');
my $file = "$t->{dir}/u/erasures.log";
my $urlstore = "$UrlStore::Test::TOP/build/urlstore";

sub lines
{
    open my $f, '<', $file or return;
    chomp(my @lines = <$f>);

    return @lines;
}

# waits for a line; its columns

sub line
{
    my ($want) = @_;

    for (1 .. 300) {
        my @found = grep { /$want/ } lines();

        return split /\t/, $found[-1] if @found;
        select undef, undef, undef, .1;
    }

    return;
}

$t->run(zone_conf('16m path=%%DIR%%/u erase_within=4s'));
$t->ready(write => 1);
$t->post('/add', join("\n", map { "http://secret$_.example/x" } 1 .. 9), @text);
select undef, undef, undef, 1.2;
ok(!-e $file, 'no erasure, no file');

is($t->post('/erase?reason=Ticket+4711', "0\nhttp://new.example/\n", @text)
    ->{status}, 202, 'erased');

my @c = line('^\S+\t1\turls\tdone\t');
like($c[0], qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, 'when');
is("@c[3 .. 5]", 'done 2 1', '  how many');
is($c[10], 'Ticket 4711', '  why');
cmp_ok(abs($c[6] - time), '<', 60, '  begun when');
ok(line('^\S+\t1\turls\tdone\t2\t1\t\d+\t\d+\t-\t-\t'), 'nothing is left');

$t->post('/erase?site=secret5.example', '', @text);
ok(line('^\S+\t2\tsite\tdone\t1\t1\t\d+\t\d+\t-\t-\t'), 'a site');
is($t->request(DELETE => '/erase/1')->{status}, 204, 'lifted');
ok(line('^\S+\t1\turls\tlifted\t2\t1\t\d+\t\d+\t\d+\t-\t'), '  a line');


# a kill: what is there stays, what is missing comes

my @before = lines();

$t->kill_all;

open my $f, '>', $file or die $!;
print $f map { "$_\n" } grep { !/\tlifted\t/ } @before;
print $f "2026-11-28T20:29:10Z\t2\tsi";
close $f or die $!;

$t->start;
$t->ready(write => 1);
ok(line('^\S+\t1\turls\tlifted\t'), 'a line that was not written comes');

select undef, undef, undef, 2.5;

my @after = lines();
my %n;

$n{join "\t", (split /\t/)[1, 3, 9]}++
    for grep { !/si$/ } @after;
is($n{"1\tlifted\t-"}, 1, '  once');
is((grep { /\t2\tsi$/ } @after), 1, 'half a line stays by itself');

is((grep { $_ > 1 } values %n), 0, 'none is there twice');
is((grep { (split /\t/)[9] ne '-' } @after[@before .. $#after]), 0,
    'what was clean is');
is(join("\n", grep { /secret\d|new\.example/ } @after), '', 'no URL');
is((stat $file)[2] & 0777 & ~0644, 0, 'nobody else may write it');


# a reload: the next workers go on with it

$t->reload;
$t->post('/erase?reason=after', "1\n", @text);
ok(line('^\S+\t3\turls\tdone\t1\t1\t\d+\t\d+\t-\t\S+\tafter'), 'a reload');


# without a server, by a store that has larger chunks than the zone

$t->stop;
@before = lines();
is(system("echo http://secret8.example/x | $urlstore erase --reason alone"
    . " $t->{dir}/u >/dev/null"), 0, 'the command');
@after = lines();
is(@after, @before + 1, '  a line');
like($after[-1], qr/\t4\turls\tdone\t1\t1\t\d+\t\d+\t-\t-\talone$/, '  it');
system("$urlstore erase --list $t->{dir}/u >/dev/null");
is(lines(), scalar @after, '  none for a list');

# what cannot be written is tried again, and said

rename $file, "$file.away";
mkdir $file;
isnt(system("$urlstore erase --lift 4 $t->{dir}/u 2>/dev/null"), 0,
    'the command says that it could not');

done_testing();
