#!/usr/bin/perl

# Each new URL is answered as new once: many clients add batches that overlap,
# of long and short URLs, in every form of answer, through two workers into a
# zone with a small ring, under sync=always.  The disk stalls until the ring is
# full, is let go, is slow, stalls again, with reloads all the while: batches
# stop in the middle, wait, and go on.
#
# In the end: which client was answered what of each line and each id?

use strict;
use warnings;

use lib 't/lib';

use Digest::SHA qw(sha512_hex);
use List::Util qw(max shuffle);
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(sleep time);

use UrlStore::Test;

need_fault_disk();

use constant RING => 256 * 1024;          # of a zone of less than 4m

my $seed = $ENV{US_SEED} // time % 100_000;
note("US_SEED=$seed");
srand($seed);

my $t = UrlStore::Test->new(disk => 1)
    ->run(zone_conf('4000k path=%%DIR%%/data sync=always'));

# real ones, and each tenth with something after it that does not compress

my @lines = grep { m{^https?://[\w.-]+/[^"\\?#]*$} }
    @{ corpus('eot2024_A', 20_000) };

for my $k (grep { $_ % 10 == 0 } 0 .. $#lines) {
    $lines[$k] .= '?' . join '', map { sha512_hex("$k $_") }
        1 .. 1 + $k / 10 % 20;
}

# what is asked of /add, and how a body of lines is made

my @forms = (
    [ 'sites=1&summary=1', 'text/plain', \&lines ],
    [ 'sites=1&summary=1&brief=1', 'text/plain', \&lines ],
    [ 'sites=1&summary=1&only=new', 'text/plain', \&lines ],
    [ 'sites=1', 'application/json', \&json_list ],
    [ 'sites=1&summary=1', 'application/x-ndjson', \&json_lines ],
    [ 'sites=1&summary=1', 'text/plain', \&pieces ]
);

ok($t->ready(write => 1), 'ready');

my %client;

for my $n (0 .. $#forms) {
    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        srand($seed + $n);
        my $ok = eval { client($n); 1 };
        warn $@ if !$ok;
        POSIX::_exit($ok ? 0 : 1);
    }

    $client{$pid} = $n;
}

# the disk, as long as there are clients

my ($full, $stalls, $failed) = (0, 0, 0);

while (running()) {
    $t->disk('stall 1');

    my ($lag, $same) = (-1, 0);

    while (running() && $same < 3) {
        my $now = $t->get('/stats')->json->{lag_bytes};

        $same = $now == $lag ? $same + 1 : 0;
        $lag = $now;
        sleep 0.02;
    }

    $full++ if $lag > RING - 4096;
    $t->signal('HUP') if $stalls++ % 3 == 1;

    $t->disk($stalls % 2 ? '' : 'slow 30');
    sleep 0.03;
}

$t->disk('');

is($failed, 0, 'every client has whole answers that agree with themselves');
cmp_ok($full, '>=', 2, "the ring was full, $full times of $stalls");

# what they have been answered, line by line

my (%line, %url, %new, %site, @wrong);

for my $n (0 .. $#forms) {
    for my $row (split /\n/, slurp("$t->{dir}/answers.$n")) {
        my ($k, $id, $status, $site, $url) = split /\t/, $row;

        push @wrong, "line $k is $line{$k} and $id"
            if ($line{$k} //= $id) != $id;
        push @wrong, "id $id is $url{$id} and $url"
            if $url ne '' && ($url{$id} //= $url) ne $url;

        $new{$id}++ if $status eq 'new';
        $site{$id}++ if $site;
    }
}

my $next = $t->get('/stats')->json->{next_id};
my %stored = stored($next);

push @wrong, map { "id $_ was answered as new " . ($new{$_} // 0) . ' times' }
    grep { ($new{$_} // 0) != 1 } 0 .. max($next, keys %new) - 1;
push @wrong, map { "id $_ is no $url{$_}" }
    grep { $stored{$_} ne $url{$_} } keys %url;

is(join("\n", splice @wrong, 0, 10), '',
    "$next ids: each was answered as new once, and is the same in all answers");
cmp_ok($next, '>', 10_000, 'they were many');

# the first URL of each site

my %first;

for my $id (0 .. $next - 1) {
    $first{($stored{$id} =~ m{^https?://(?:www\.)?([^/]+)})[0]} //= $id;
}

is(join(' ', sort { $a <=> $b } keys %site),
    join(' ', sort { $a <=> $b } values %first), 'and each site as new');
is(scalar(grep { $site{$_} != 1 } keys %site), 0, '  once');

is(($t->get('/metrics')->{body}
    =~ /^urlstore_answers_total\{zone="u",status="new"\} (\d+)$/m)[0], $next,
    'as many are counted');

# what was answered survives

$t->allow(qr/the master process is gone/);
$t->kill_all;
$t->start;
ok($t->ready(write => 1), 'started after kill -9');
is_deeply({ stored($next) }, \%stored, 'all is there');


sub running
{
    for my $pid (keys %client) {
        if (waitpid($pid, WNOHANG) == $pid) {
            $failed++ if $? != 0;
            delete $client{$pid};
        }
    }

    return scalar %client;
}


# id => URL

sub stored
{
    my ($end) = @_;

    my $body = '';

    for (my $from = 0; $from < $end; $from += 5000) {
        $body .= $t->get("/urls?from=$from&limit=5000")->{body};
    }

    return map { split /\t/ } split /\n/, $body;
}


# One of them: two thirds of the lines, in its own order, some more than once.

sub client
{
    my ($n) = @_;

    my ($query, $type, $make) = @{ $forms[$n] };

    my $client = $t->client;
    my @order = shuffle(0 .. $#lines);
    my $answers = '';

    splice @order, @lines * 2 / 3;
    push @order, @order[map { int rand @order } 1 .. 100];

    while (my @batch = splice @order, 0, 200 + int rand 1800) {
        my $r;

        # a worker that leaves closes idle connections: it has read nothing

        for (1 .. 3) {
            $r = $client->request('POST', "/add?$query",
                $make->(map { $lines[$_] } @batch), 'Content-Type' => $type);
            last if $r;
        }

        die $r ? "$r->{status}: $r->{body}\n" : "no answer\n"
            if !$r || $r->{status} != 200;

        $answers .= answers($n, $r->{body}, @batch);
    }

    spew("$t->{dir}/answers.$n", $answers);
}


# An answer as rows of line, id, status, whether the site is new, URL.  Its
# figures must be those of its rows.

sub answers
{
    my ($n, $body, @batch) = @_;

    my ($i, %count, %sum) = (0);
    my $rows = '';
    my $last = -1;
    my $only = $forms[$n][0] =~ /only/;

    %sum = $body =~ /\b(new|seen|errors|next_id)"?[=:](\d+)/g;

    while ($body =~ /^(\d+)\t(\w+)(?:\t(http\S+))?\tsite-(\w+)(?:\t(\d+))?$/mg)
    {
        row(\$rows, $batch[$5 // $i++], $1, $2, $4 eq 'new', $3);
    }

    while ($body =~ /\{"id":(\d+),"status":"(\w+)","url":"([^"]+)",
                      "new_site":(\w+)\}/xg)
    {
        row(\$rows, $batch[$i++], $1, $2, $4 eq 'true', $3);
    }

    for (split /\n/, $rows) {
        my (undef, $id, $status) = split /\t/;

        $count{$status}++;
        next if $status ne 'new';

        die "id $id is new, but below next_id=$sum{next_id}\n"
            if $id < $sum{next_id};
        die "id $id is new after $last\n" if $id <= $last;
        $last = $id;
    }

    $count{seen} = @batch - $count{new} if $only && ($count{new} //= 0);

    for (qw(new seen)) {
        die "$_: " . ($count{$_} // 0) . " rows, $sum{$_} in the summary\n"
            if ($count{$_} // 0) != $sum{$_} && !($only && $_ eq 'seen');
    }

    die "$sum{new} + $sum{seen} answers to " . @batch . " lines\n"
        if $sum{new} + $sum{seen} != @batch || $sum{errors};

    return $rows;
}


sub row
{
    my ($rows, $k, $id, $status, $site, $url) = @_;

    $$rows .= join("\t", $k, $id, $status, $site ? 1 : 0, $url // '') . "\n";
}


sub lines { return join '', map { "$_\n" } @_ }


sub json_list { return '[' . join(',', map { qq("$_") } @_) . ']' }


sub json_lines { return join '', map { qq({"url":"$_"}\n) } @_ }


# the same as lines(), in chunks that end anywhere

sub pieces
{
    my $body = lines(@_);

    return sub {
        return length $body ? substr $body, 0, 1 + int rand 20_000, '' : undef;
    };
}
