#!/usr/bin/perl

# How a request walks through the files of src/.
#
#     make visits            [SHOW=1: each stay of the one URL, in order]
#
# A module without optimization records every function that the event loop
# enters and leaves (hook.c).  Functions of headers are left out.  A stay is the
# time from one .c file to the next; a file that is entered again is a return.
# One worker, a store in a directory with sync=1s, which is warm; text bodies,
# medians of 21 requests.  So what a tick of the store does is seldom in it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../../t/lib";

use UrlStore::Test;

no warnings 'portable';

my $visits = "$UrlStore::Test::TOP/build/visits";
my $module = "$visits/ngx_http_urlstore_module.so";

$ENV{US_MODULE} = $module;

my $t = UrlStore::Test->new(workers => 1, log => 'warn', judge => 0);

my $file = $t->dir . '/visits';
spew($file, "\0" x (16 * 1024 * 1024));
chmod 0666, $file;

$t->{globals} = 'env US_VISITS;';
$t->{env} = { LD_PRELOAD => "$visits/hook.so", US_VISITS => $file };
mkdir $t->dir . '/data' or die $!;
chown((getpwnam('nobody'))[2, 3], $t->dir . '/data');

$t->run(UrlStore::Test::zone_conf(
    '32m path=%%DIR%%/data sync=1s'));
$t->ready;

my $base;
my $client = $t->client;
my %files;
my $n = 0;

printf "%-28s %8s %8s %8s %8s\n", '', 'calls', 'stays', 'files', 'returns';

walk('POST /add, a new URL', sub { add(1) });
walk('POST /add, 11 new URLs', sub { add(11) });
walk('POST /seen, a known URL', sub {
    ask('POST', '/seen', "http://host1.example/page/1\n") });
walk('GET /url/1', sub { ask('GET', '/url/1') });


sub add
{
    my ($urls) = @_;

    ask('POST', '/add', join '', map { $n++; "http://host$n.example/page/$n\n" }
        1 .. $urls);
}


sub ask
{
    my ($method, $path, $body) = @_;

    my $r = $client->request($method, $path, $body,
        'Content-Type' => 'text/plain');

    die "$method $path: $r->{status} $r->{body}" if $r->{status} != 200;
}


sub words
{
    my ($from, $count) = @_;

    my $bytes;

    open my $in, '<', $file or die $!;
    binmode $in;
    seek $in, $from * 8, 0;
    read $in, $bytes, $count * 8;

    return unpack 'Q<*', $bytes;
}


sub walk
{
    my ($name, $request) = @_;

    my @walks;

    $request->() for 1 .. 3;

    for (1 .. 21) {
        my ($from) = words(0, 1);

        $request->();

        my ($to) = words(0, 1);

        push @walks, stays(words($from + 1, $to - $from));
    }

    my ($walk) = (sort { $a->{stays} <=> $b->{stays} } @walks)[10];

    printf "%-28s %8d %8d %8d %8d\n", $name, $walk->{calls}, $walk->{stays},
        $walk->{files}, $walk->{stays} - $walk->{files};

    return if !$ENV{SHOW} || $name !~ /a new URL/;

    print "    $_\n" for @{$walk->{order}};
}


sub stays
{
    my (@stack, @order, %seen);

    my $calls = 0;
    my $last = '';

    name(@_);

    for my $word (@_) {
        if ($word >> 63) {
            pop @stack;

        } else {
            push @stack, $files{$word} // '';
            $calls++;
        }

        my ($at, $function) = split / /, $stack[-1] // '';

        next if !$at || $at =~ /\.h$/ || $last eq $at;

        $last = $at;
        $seen{$at}++;
        push @order, "$at  $function";
    }

    return { calls => $calls, stays => scalar @order,
        files => scalar keys %seen, order => \@order };
}


# %files: address -> "file function"

sub name
{
    $base //= do {
        my ($pid) = $t->worker_pids;
        my ($line) = grep { /\Q$module\E$/ } split /\n/,
            slurp("/proc/$pid/maps");

        hex((split /-/, $line)[0]);
    };

    my %new = map { $_ => 1 } grep { !($_ >> 63) && !exists $files{$_} } @_;
    my @new = keys %new or return;

    spew("$file.addresses", join '', map { sprintf "%x\n", $_ - $base } @new);

    my @lines = split /\n/, `addr2line -f -e $module < $file.addresses`;

    for my $address (@new) {
        my ($function, $place) = splice @lines, 0, 2;

        $place =~ s/:\d+.*//;
        $place =~ s{.*/src/}{};
        $files{$address} = "$place $function";
    }
}
