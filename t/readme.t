#!/usr/bin/perl

# The documentation says what is so: the tour of the README, typed after `make
# run`, is answered byte for byte; targets of make and directives exist.  Links
# are looked up by t/site.t.

use strict;
use warnings;

use lib 't/lib';
use Cwd qw(abs_path);
use File::Basename qw(basename);
use File::Temp qw(tempdir);
use Test::More;

use UrlStore::Test;

my $top = $UrlStore::Test::TOP;

chdir $top or die $!;


# the tour

my @steps = tour(slurp('README.md'));
my $data = tempdir(CLEANUP => 1);
my $port = UrlStore::Test::free_port();

is(scalar @steps, 5, 'five commands');
is(system("tools/run.sh start $port $data 2 >$data/out 2>&1"), 0, 'make run')
    or diag(slurp("$data/out"));

for my $step (@steps) {
    my ($command, $answer) = @$step;

    my $ours = $command =~ s/localhost:8080/localhost:$port/gr;

    is(`curl() { command curl -sS "\$@"; }; $ours`, $answer, $command);
}

is(system("tools/run.sh stop $port $data >/dev/null"), 0, 'make stop');


# targets, directives

my @docs = glob 'README.md docs/*.md docs/decisions/*.md';
my (%target, %named, %directive);

for my $doc (@docs) {
    my $text = slurp($doc) =~ s/^```.*?^```//gmsr;

    $named{$1} = $doc
        while $text =~ /(?:`|^    )(?:\w+=\S+ )?make ([a-z][a-z\d-]*)/mg;
    $directive{$1} = $doc while $text =~ /\b(urlstore_[a-z_]+)\b(?!_?\*)/g;
}

$target{$_} = 1
    for map { /^([a-z\d-]+(?: [a-z\d-]+)*):(?!=)/ ? split ' ', $1 : () }
    map { split /\n/, slurp($_) } 'Makefile', glob 'mk/*.mk';

delete $named{modules};                # of nginx

is(join(' ', sort grep { !$target{$_} } keys %named), '',
    'targets of make that the documentation names exist');

my $source = join '', map { slurp($_) } glob 'src/ngx_*.c';
my %real = map { ("urlstore_$_" => 1) }
    $source =~ /ngx_string\("urlstore_(\w+)"\),\s+NGX_HTTP_/g,
    $source =~ /_endpoint_command\("(\w+)"/g;

my %other = map { $_ => 1 } slurp('src/http/ngx_http_urlstore_variables.c')
    =~ /ngx_string\("(\w+)"/g;

my %metric = map { ("urlstore_$_" => 1) }
    map { slurp($_) =~ /"([a-z_]+)"/g } 'src/api/us_figures.c';

# what a spider may define for the scheduler of Scrapy

my %spider = map { $_ => 1 } slurp('clients/python/urlstore/scrapy.py')
    =~ /\bgetattr\(spider, "(urlstore_\w+)"/g;

is(join(' ', sort grep { !$real{$_} && !$other{$_} && !$metric{$_}
    && !$spider{$_} } keys %directive), '',
    'so do directives, variables, metrics and methods of spiders');
is(join(' ', sort grep { !$directive{$_} } keys %real, keys %other), '',
    'and all of them are described');


# files of the source

my %file = map { basename($_) => 1 }
    glob 'src/*.[ch] src/*/*.[ch] t/*/* bench/*.[ch] bench/*/*';

$file{'ngx_http_urlstore_front.h'} = 1;           # made by front/front.awk

my @gone = grep { my $text = slurp($_);
    grep { !$file{$_} } $text =~ /\b((?:us|ngx_http_urlstore)_\w+\.[ch])\b/g }
    @docs, glob 'src/*.[ch] src/*/*.[ch]';

is("@gone", '', 'files that documents and comments name exist');

done_testing();


# the commands of "    $ ..." lines, each with the lines below it

sub tour
{
    my ($text) = @_;

    my @steps;

    for my $line (split /\n/, $text) {
        if ($line =~ /^    \$ (.*)/) {
            push @steps, [ $1, '' ];

        } elsif (@steps && $line =~ /^    (.*)/) {
            $steps[-1][1] .= "$1\n";

        } elsif (@steps) {
            last;
        }
    }

    return @steps;
}
