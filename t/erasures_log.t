#!/usr/bin/perl

# The audit of erasures, "erasures.log" in the directory: a line for each change
# of one, none twice, none missing after a kill, and no URL.

use strict;
use warnings;

use lib 't/lib';

use Time::HiRes;
use UrlStore::Replica;
use UrlStore::Test;

my $t = UrlStore::Test->new(workers => 2, log => 'notice');
my @text = ('Content-Type' => 'text/plain');
our $file = "$t->{dir}/u/erasures.log";
my $urlstore = "$UrlStore::Test::TOP/build/urlstore";

sub lines
{
    open my $f, '<', $file or return;
    chomp(my @lines = <$f>);

    return @lines;
}

# KB that a process has had

sub memory
{
    my ($pid) = @_;

    open my $f, '<', "/proc/$pid/status" or die $!;

    return map { /^VmHWM:\s+(\d+)/ ? $1 : () } <$f>;
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


# a start says nothing of what was clean; what is moved or cut is made anew

$t->stop;
@before = lines();
$t->start;
$t->ready(write => 1);
ok(wait_until(10, sub { !@{ $t->get('/erase/2')->json->{left} } }),
    'clean after a start');
select undef, undef, undef, 2.5;
is(join("\n", lines()), join("\n", @before), '  no line');

rename $file, "$file.moved";
ok(line('^\S+\t2\tsite\tdone\t'), 'moved: the next one has a line of each');
truncate $file, 0;
ok(line('^\S+\t2\tsite\tdone\t'), 'cut: as well');
is((-s $file), length(join '', map { "$_\n" } lines()), '  from its beginning');
unlink $file;
rename "$file.moved", $file;


# of any size and contents: nobody waits until it is read

{
    $t->stop;
    open my $h, '+<', $file or die $!;
    my $size = -s $h;

    seek $h, 0, 2;
    print $h "2026-11-28T20:29:10Z\t$_\turls\tdone\t1\t1\t9\t9\t-\t-\t\n"
        for 123456789, 2**63;
    print $h 'x' x (1 << 20), "\n";
    $h->flush;
    truncate $h, 20 << 30;
    $t->start;
    $t->ready(write => 1);

    my ($most, $until) = (0, Time::HiRes::time() + 4);

    while ((my $from = Time::HiRes::time()) < $until) {
        $t->get('/url/3');
        my $took = Time::HiRes::time() - $from;
        $most = $took if $took > $most;
    }

    cmp_ok($most, '<', .5, 'a file of 20 GB: no request waits');
    cmp_ok((sort { $b <=> $a } map { memory($_) } $t->worker_pids)[0], '<',
        300_000, '  nor is memory taken by numbers in it');
    $t->stop;
    truncate $h, $size;
    $t->start;
    $t->ready(write => 1);
}


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

# it stays when a replica fetches another store

{
    my $conf = <<'CONF';
urlstore_zone u 16m erase_within=4s OPTIONS;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location = /log { urlstore_log u; }
}
CONF
    my $p = UrlStore::Test->new->run($conf =~ s{OPTIONS}{path=%%DIR%%/p}r);
    my $r = UrlStore::Test->new(log => 'notice');

    local $file = "$r->{dir}/u/erasures.log";

    $p->ready(write => 1);
    $r->run($conf =~ s{OPTIONS}
        {'path=%%DIR%%/u follow=http://127.0.0.1:' . $p->port . '/'}er);
    $p->post('/erase?reason=first', "http://one.example/\n", @text);
    ok(line('\tdone\t.*\t-\tfirst$'), 'a replica has it, too');

    my @first = lines();

    $p->stop;
    $p->run($conf =~ s{OPTIONS}{path=%%DIR%%/q}r);
    $p->ready(write => 1);
    $p->post('/erase?reason=second', "http://two.example/\n", @text);
    ok(line('\tdone\t.*\t-\tsecond$'), 'another store');

    my @both = lines();
    is(join("\n", @both[0 .. $#first]), join("\n", @first),
        '  what was there stays');
    $_->stop for $r, $p;
}


# what cannot be written is tried again, and said

rename $file, "$file.away";
mkdir $file;
isnt(system("$urlstore erase --lift 4 $t->{dir}/u 2>/dev/null"), 0,
    'the command says that it could not');

done_testing();
