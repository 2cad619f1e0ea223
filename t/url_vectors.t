#!/usr/bin/perl

# The vectors of the WHATWG URL standard, of RFC 3986 and of other crawlers.
#
# t/data/differences.txt lists where a profile differs from what another
# project expects, with the reason.  It must be exact: a line that is missing
# fails, and so does one that is no longer true.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Test::More;

use lib dirname(abs_path(__FILE__)) . '/lib';
use UrlStore::Vectors;

my @profiles = qw(whatwg crawler crawler-clean aggressive);


# 1. what must pass as a whole

for my $name (qw(whatwg-urltestdata ada-extra-urltestdata)) {
    my @v = vectors($name);

    expect($name, 'whatwg',
           [map { { url => $_->{input}, base => $_->{base} } } @v],
           [map { $_->{failure} ? undef : $_->{href} } @v]);
}

{
    my @v = vectors('wpt-percent-encoding');

    expect('wpt-percent-encoding', 'whatwg',
           [map { { url => "http://h/?$_->{input}" } } @v],
           [map { "http://h/?$_->{output}{'utf-8'}" } @v]);
}

expect('crawler-consensus', 'crawler', rows('crawler-consensus'));

{
    my @v = vectors('rfc3986-5.4');

    expect('rfc3986-5.4', 'whatwg',
           [map { { url => $_->{input}, base => $_->{base} } } @v],
           [map { $_->{whatwg_differs} // $_->{expected} } @v]);
}


# 2. hosts

for my $name (qw(whatwg-toascii whatwg-IdnaTestV2)) {
    my @v = vectors($name);

    expect($name, 'whatwg',
           [map { { url => "https://$_->{input}/x" } } @v],
           [map { $_->{output} && "https://$_->{output}/x" } @v]);
}


# 3. the suites that contradict each other: every difference has a reason

my %reason;

$reason{$_->[0]}{$_->[1]}{$_->[2]} = $_->[3] for table('differences.txt');

for my $suite (
    [ 'urlcanon-supplemental-whatwg', 'whatwg' ],
    [ 'urlcanon-funky-ipv4', 'whatwg', 'http://%s/', 'host' ],
    [ 'urlcanon-path-dots', 'whatwg', 'http://h%s' ],
    [ 'crawler-commons', 'crawler' ],
    [ 'nutch-basic', 'crawler' ],
    [ 'w3lib-canonicalize', 'crawler' ],
    [ 'wac-ordinary-ia', 'crawler' ],
    [ 'heritrix', 'aggressive' ],
    [ 'nutch-regex', 'aggressive' ])
{
    my ($name, $profile, $format) = @$suite;
    my @v = vectors($name);
    my $put = sub { defined $_[0] && $format ? sprintf $format, $_[0] : $_[0] };

    my @got = normalize($profile, map {
        { url => $put->($_->{input}), base => $_->{base} }
    } @v);

    my (@unlisted, %stale, $same);

    $stale{$_}++ for keys %{$reason{$name}{$profile} || {}};

    for my $i (0 .. $#v) {
        my $want = $put->($v[$i]{expected});
        my $ok = defined $want ? $got[$i] eq $want : $got[$i] =~ /^!/;
        my $key = "$i " . printable($v[$i]{input});

        if ($ok) {
            $same++;
            next;
        }

        delete $stale{$key}
            or push @unlisted, join ' | ', $key, $want // '(refused)',
                                    $got[$i];
    }

    is_deeply(\@unlisted, [], "$name, $profile: $same of " . @v
              . ' agree, the others have a reason');
    is_deeply([sort keys %stale], [], "$name, $profile: no reason is stale");
}


# 4. whatever it is: no crash, and normal means normal

my @all;

for my $file (glob vectors_dir() . '/*.json') {
    my ($name) = $file =~ m{([^/]+)\.json$};
    my $host = $name =~ /toascii|Idna|funky/;

    push @all, map {
        { url => $host ? "http://$_->{input}/" : $_->{input},
          base => $_->{base} }
    } vectors($name);
}

for my $profile (@profiles) {
    my @once = grep { !/^!/ } normalize($profile, @all);
    my @twice = normalize($profile, map { { url => $_ } } @once);
    my @bad = grep { $once[$_] ne $twice[$_] } 0 .. $#once;

    is_deeply([map { "$once[$_] -> $twice[$_]" } @bad], [],
              "$profile: " . @once . ' of ' . @all . ' vectors, idempotent');
}

done_testing();


sub rows
{
    my @v = vectors($_[0]);

    return [map { { url => $_->{input}, base => $_->{base} } } @v],
           [map { $_->{expected} } @v];
}


# undef expects a refusal

sub expect
{
    my ($name, $profile, $rows, $want) = @_;

    my @got = normalize($profile, @$rows);

    my @bad = grep {
        defined $want->[$_] ? $got[$_] ne $want->[$_] : $got[$_] !~ /^!/
    } 0 .. $#got;

    is_deeply([map { printable($rows->[$_]{url}) . ' -> ' . $got[$_] } @bad],
              [], "$name, $profile: " . @got . ' of ' . @got);
}
