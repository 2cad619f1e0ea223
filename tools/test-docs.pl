#!/usr/bin/perl

# Runs the commands of README.md and docs/*.md:
#
#     tools/test-docs.pl
#
# A command stands in an indented block whose first word is a program.  The
# blocks of a document run in its order, in a directory of their own, where
#
#     /var/lib/urlstore/urls    is the store of a service that runs there; so is
#     DIR                       this word
#     localhost:8080, HOST      is that service
#     systemctl                 stops and starts it
#     links.xz, links.txt.xz    are generated URLs
#     UUID                      is another one each time
#     nodes                     has us_0 to us_3
#
# What is not run has its reason in the table below, and is printed with it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../t/lib";

use Cwd qw(getcwd);
use File::Temp qw(tempdir);

use UrlStore::Test;

my $program = qr{(?:make|urlstore|curl|xz|printf|apt-get|systemctl|kill|cc
    |docker|kubectl|pip|scrapy|python3|zeno|mv|chown|echo|build/\S+
    |\./configure)\b}x;

my @elsewhere = (
    [ qr{^README\.md: make (?!run)}, 'targets exist: t/readme.t' ],
    [ qr{^README\.md: make run|^README\.md: curl|^docs/install\.md: make run},
        't/readme.t, t/run.t' ],
    [ qr{^docs/install\.md: make deb}, 'make test-deb' ],
    [ qr{^docs/install\.md: apt-get}, 't/install.t; nginx by make test-deb' ],
    [ qr{^docs/install\.md: docker}, 'not run anywhere: make test-deploy' ],
    [ qr{configure|test-builds}, 'make test-builds' ],
    [ qr{examples/embed\.c}, 't/embed.t' ],
    [ qr{^docs/(?:crawlers|clients|api)\.md}, 'make test-clients' ],
    [ qr{^docs/(?:benchmarks|lineage|decisions)}, 'benchmarks' ],
    [ qr{kill -USR2}, 't/durability_upgrade.t' ],
    [ qr{dedup \[-q\]}, 'how it is used: t/command.t' ],
    [ qr{cluster rebase}, 't/cluster_rebase.t' ],
    [ qr{cluster apply}, 't/cluster_command.t, t/cluster_growth.t' ],
    [ qr{HOST >saved|cluster forget|cut -f 2 saved}, 't/cluster_restore.t' ],
);

my $top = getcwd;
my $dir = tempdir(CLEANUP => 1);
my $port = UrlStore::Test::free_port();
my $failed = 0;
my $uuids = 0;
my %count = (ran => 0, elsewhere => 0);

prepare();

for my $doc ('README.md', sort glob 'docs/*.md') {
    for my $block (blocks(slurp($doc))) {
        check($doc, $block);
    }
}

run('systemctl stop nginx');
printf "%d blocks ran, %d elsewhere, %d failed\n", $count{ran},
    $count{elsewhere}, $failed;
exit($failed || !$count{ran} ? 1 : 0);


# a service, a command systemctl for it, and lists

sub prepare
{
    mkdir "$dir/$_" for qw(bin backup);

    spew("$dir/bin/systemctl", "#!/bin/sh\ncd $top && case \$1 in\n"
        . "start) tools/run.sh start $port $dir/var 1 ;;\n"
        . "stop) tools/run.sh stop $port $dir/var ;;\n"
        . "restart) \$0 stop && \$0 start ;;\nesac\n");
    chmod 0755, "$dir/bin/systemctl";
    symlink "$top/build", "$dir/build";

    spew("$dir/nodes", join '', map { "us_$_ 127.0.0.1:808$_\n" } 0 .. 3);
    system("build/generate -n 20000 | xz -0 > $dir/links.txt.xz && "
        . "cp $dir/links.txt.xz $dir/links.xz") == 0 or die 'no lists';
    run('systemctl start nginx') == 0 or die slurp("$dir/out");
    run('xz -dc links.xz | urlstore add --new http://localhost:8080')
        == 0 or die slurp("$dir/out");
}


# commands of a block; prose, configuration and output are none

sub blocks
{
    my ($text) = @_;

    $text =~ s/^```.*?^```//gms;

    return map { s/^(?: {7}| {4})(?:\$ )?//gmr }
        grep { /^ +(?:\$ )?$program/ }
        $text =~ /(?:^|\n\n)((?: {4}| {7}\b).*(?:\n {4}.*)*)/g;
}


sub check
{
    my ($doc, $block) = @_;

    my ($first) = $block =~ /^(.*)/;

    for my $row (@elsewhere) {
        if ("$doc: $block" =~ $row->[0]) {
            print "elsewhere  $doc: $first ($row->[1])\n";
            $count{elsewhere}++;
            return;
        }
    }

    $count{ran}++;

    if (run($block) == 0) {
        print "ok         $doc: $first\n";
        return;
    }

    print "FAILED     $doc:\n$block\n", `tail -n 20 $dir/out`;
    $failed++;
}


# as a user would: what is meant by the names, without remarks

sub run
{
    my ($block) = @_;

    $block =~ s/ {2,}\S.*$| +#.*$//gm;
    $block =~ s{/var/lib/urlstore/urls|\bDIR\b(?!\.)}{$dir/var/data}g;
    $block =~ s{\bDIR\.(\w+)}{$dir/var/data.$1}g;
    $block =~ s{/backup/}{$dir/backup/}g;
    $block =~ s{localhost:8080|\bHOST\b}{localhost:$port}g;
    $block =~ s{\bUUID\b}{sprintf '%032x', ++$uuids}ge;
    $block =~ s{\bOUT$}{$dir/backup/out}gm;
    $block =~ s{restore IN \S+}{restore $dir/backup/out $dir/restored}g;
    $block =~ s{< LINES}{< /dev/null}g;
    $block =~ s{\[--fast\]}{--fast}g;
    $block =~ s{-n N\b}{-n 20000}g;
    $block =~ s{/var/spool/links}{$dir/backup}g;
    $block =~ s{^(.*--follow)}{timeout --preserve-status -s INT 1 $1}gm;
    $block =~ s{^(urlstore import.*)}{systemctl stop\n$1\nsystemctl start}gm;

    spew("$dir/script", "set -e -o pipefail\ncd $dir\n$block\n");

    return system("timeout 120 env PATH=$dir/bin:$top/build:\$PATH "
        . "bash $dir/script "
        . "> $dir/out 2>&1 < /dev/null");
}
