#!/usr/bin/perl

# The files of deploy/ are linted; none of them is run.

use strict;
use warnings;

use File::Temp qw(tempdir);
use Test::More;

my $dir = tempdir(CLEANUP => 1);


sub lint
{
    my ($what) = @_;

    return `node t/deploy/lint.mjs $what 2>&1`;
}


is(lint('deploy'), "ok\n", 'deploy/');

# each fault is seen

for (['Dockerfile', 's/^CMD /CMDX /m', qr/^Dockerfile:\d+: .*CMDX/m],
    ['Dockerfile', 's/^EXPOSE 8080/EXPOSE port/m', qr/^Dockerfile:\d+: /m],
    ['compose.yaml', 's/ports:/porst:/', qr/^compose.yaml: .*additional/m],
    ['kubernetes.yaml', 's/replicas: 1/replicas: one/',
        qr/^kubernetes.yaml: StatefulSet: /m],
    ['kubernetes.yaml', 's/serviceName: .*//', qr/^service: /m],
    ['kubernetes.yaml', 's/name: data$/name: date/m', qr/^volume: /m],
    ['site.conf', 's/8080/8081/', qr/^listen: /m])
{
    my ($name, $change, $fault) = @$_;

    system("rm -rf $dir/* && cp deploy/* $dir && "
        . "perl -0pi -e '$change' $dir/$name");
    like(lint($dir), $fault, "$name, $change");
}

done_testing();
