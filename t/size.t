#!/usr/bin/perl

# urlstore size: all URLs of which a sample was measured fit a zone of the SIZE
# that it prints, and start again in it; and SIZE is not twice what they need.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

# US_FULL: so many that what is fixed in SIZE hides no error of the rest

my $n = $ENV{US_FULL} ? 400_000 : 100_000;
my $sample = $n * 3 / 4;
my $dir = UrlStore::Test->new(judge => 0)->dir;

$ENV{TMPDIR} = $dir;
system("build/generate -n $n > $dir/all && head -n $sample $dir/all | "
    . "xz -0 > $dir/sample.xz");

my $out = `build/urlstore size --urls $n --sample $dir/sample.xz`;
my %is = $out =~ /^(\w+) +([\d.]+)/mg;

is($?, 0, 'urlstore size') or diag($out);
note($out);
is($is{sample}, $sample, 'of a sample');
is($is{URLs}, $n, 'for more URLs');
is_deeply([ glob "$dir/urlstore-size-*" ], [], 'nothing is left');

my $t = UrlStore::Test->new(daemon => 1)->run(<<"CONF");
urlstore_zone u $is{SIZE}m path=%%DIR%%/store;
server {
    listen 127.0.0.1:%%PORT%%;
    client_max_body_size 8m;
    location / { urlstore_api u; }
}
CONF

ok($t->ready(write => 1), "a zone of $is{SIZE}m");

my $new = 0;
my @lines;

open my $all, '<', "$dir/all" or die "all: $!";

while (my $line = <$all>) {
    push @lines, $line;

    if (@lines == 10000 || eof $all) {
        $new += () = $t->post('/add', join('', @lines),
            'Content-Type' => 'text/plain', Accept => 'text/plain')->{body}
            =~ /\tnew\t/g;
        @lines = ();
    }
}

is($new, $n, 'all URLs fit');
$t->stop;
$t->start;
ok($t->ready(write => 1), 'also when it starts again');

my $stats = json($t->get('/stats')->{body});

is($stats->{urls}, $n, 'with all of them');
cmp_ok($is{SIZE} << 20, '<', 2 * $stats->{used}, 'SIZE is not far more');

# the time for a start is not counted in whole ms

$out = `head -n 12000 $dir/all | build/urlstore size --urls 1e12 --sample -`;
my ($urls) = $out =~ /, (\d+) different/;
my ($restart) = $out =~ /^restart +([\d.]+) s/m;
my $ms = $restart * $urls / 1e9;

cmp_ok($ms, '>', 0, 'the time for a start');
cmp_ok(abs($ms - int($ms + .5)), '>', 1e-5, 'is finer than a ms')
    or diag("$ms ms");

# what is no answer

for ([ '', 2, 'usage: urlstore size' ],
    [ "--urls x --sample $dir/all", 2, 'is not a number of URLs' ],
    [ "--urls 0 --sample $dir/all", 2, 'is not a number of URLs' ],
    [ "--urls 5 --sample $dir/none", 2, 'none: open: No such file' ],
    [ '--urls 5 --sample README.md', 1, 'at least 10000 are needed' ])
{
    my ($arguments, $code, $why) = @$_;
    my $said = `build/urlstore size $arguments 2>&1`;

    is($? >> 8, $code, "size $arguments");
    like($said, qr/\Q$why/, $why);
}

is_deeply([ glob "$dir/urlstore-size-*" ], [], 'nothing is left');
