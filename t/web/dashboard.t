#!/usr/bin/perl

# conf/grafana.json has the types that Grafana publishes for dashboards; what it
# shows is tested by metrics.t.  No Grafana reads it here.

use strict;
use warnings;

use File::Temp qw(tempdir);
use Test::More;

my $dir = tempdir(CLEANUP => 1);

# each fault is seen

my @faults = (
    [ 's/"absolute"/"absolut"/', qr/not assignable to .*"percentage"/ ],
    [ 's/"gridPos"/"gridpos"/', qr/'"gridpos"' does not exist/ ],
    [ 's/"expr": /"query": /', qr/'"query"' does not exist/ ],
    [ 's/"colorMode": /"colourMode": /', qr/'"colourMode"' does not exist/ ],
    [ 's/"mode": "multi"/"mode": "many"/', qr/not assignable to .*"single"/ ],
    [ 's/"refresh": 2/"refresh": 7/', qr/VariableRefresh/ ],
    [ 's/"type": "stat"/"type": "singlestat"/', qr/"stat" \| "timeseries"/ ],
    [ 's/"min": 0/"min": "0"/', qr/'string' is not assignable/ ],
    [ 's/"options"/"rows": [], "options"/', qr/'"rows"' does not exist/ ],
);

for my $n (0 .. $#faults) {
    system("perl -0pe '$faults[$n][0]' conf/grafana.json > $dir/$n.json") == 0
        or die;
}

my @said = split /^(?=\S+:-?\d+: )/m,
    `node t/web/dashboard.mjs conf/grafana.json $dir/*.json 2>&1`;

is(join('', grep { !/^$dir/ } @said), '', 'the dashboard');

for my $n (0 .. $#faults) {
    like(join('', grep { m{^$dir/$n\.json:\d} } @said), $faults[$n][1],
        $faults[$n][0]);
}

done_testing();
