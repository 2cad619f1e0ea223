#!/usr/bin/perl

# urlstore bench: its parts add up, its answers are right, and a zone that is
# filled holds as many URLs as the bytes in use promise.

use strict;
use warnings;

use File::Temp qw(tempdir);
use JSON::PP ();
use Test::More;

use lib 't/lib';
use UrlStore::Corpora;


sub bench
{
    my $out = `build/urlstore bench --json @_`;

    is($?, 0, "bench @_");

    return JSON::PP->new->decode($out);
}


my $urls = tempdir(CLEANUP => 1) . '/urls';

# US_FULL=1 takes a list with many repetitions, too

for my $name ('html_news_blogs_pages',
    $ENV{US_FULL} ? 'trackawesomelist_md' : ())
{
    open my $f, '>', $urls or die "$urls: $!";
    print $f "$_\n" for @{ corpus($name, 100_000) }, @{ generated(100_000) };
    close $f or die "$urls: $!";

    my $all = bench($urls);
    my $full = bench('--fill', $urls);
    my $sum = 0;

    is($all->{errors} + $full->{errors}, 0, 'no wrong answer');

    $sum += $_ for values %{$all->{parts}};
    is($sum, $all->{zone_bytes}, 'the parts are the bytes in use');

    $sum = 0;
    $sum += $_ for values %{$full->{parts}};
    is($sum, $full->{zone_size}, 'and with what is free the zone');

    cmp_ok($full->{urls}, '<', $all->{urls}, 'it became full');
    cmp_ok($full->{zone_size} / $full->{urls}, '<',
        1.05 * $all->{zone_bytes} / $all->{urls},
        'SIZE for each URL of a full zone is at most 5 % more');
    cmp_ok($all->{bytes_per_url}, '<', 28, 'and that is little');
}

my $some = bench('--zone', '4m', '--limit', 1000, '--shuffle', 1, '--huge',
    corpus_file('zhihu_hot_daily'));

is($some->{zone_size}, 4 << 20, '--zone');
cmp_ok($some->{urls}, '<=', 1000, '--limit: lines');
cmp_ok($some->{urls}, '>', 500, 'and no fewer');

done_testing();
