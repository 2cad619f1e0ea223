#!/usr/bin/perl

# What of src/ has run, by the counters that gcov has left below DIR:
#
#     tools/coverage.pl DIR [UNREACHED]
#
# Prints a table of rooms: lines and branches, and how many of them ran.  Writes
# DIR/dead.txt: each function that never ran, and each run of lines without
# one that did, the longest first.
#
# A file is compiled several times: for the library, into a unit test that
# includes it, into the module.  Its counts are added.  A killed process leaves
# none.
#
# UNREACHED lists functions, "FILE NAME()", that alone of all in their rooms may
# never have run: any other one is printed, or one that has run, as an error.

use strict;
use warnings;

use File::Find qw(find);
use JSON::PP;

my $dir = shift // die "usage: tools/coverage.pl DIR [UNREACHED]\n";
my (@data, %line, %branch, %function);

find({ no_chdir => 1, wanted => sub { push @data, $_ if /\.gcda$/ } }, $dir);
@data or die "$dir: no counters\n";

for my $file (@data) {
    open my $fh, '-|', 'gcov', '-b', '-t', '--json-format', $file or die $!;
    local $/;
    my $text = <$fh> // '';
    close $fh;

    for my $unit (split /\n(?=\{)/, $text) {
        add(decode_json($unit)) if $unit =~ /\S/;
    }
}

my %room;

for my $name (sort keys %line) {
    my ($room) = $name =~ m{^src/([^/]+)/};
    my $r = $room{$room // 'us'} //= [ (0) x 5 ];

    $r->[0]++;

    for my $n (keys %{ $line{$name} }) {
        $r->[1]++;
        $r->[2]++ if $line{$name}{$n};

        for (@{ $branch{$name}{$n} // [] }) {
            $r->[3]++;
            $r->[4]++ if $_;
        }
    }
}

print "| room | files | lines | ran | branches | ran |\n",
    "|---|---|---|---|---|---|\n";

my @sum = (0) x 5;

for my $room (sort keys %room) {
    row($room eq 'us' ? '`src/us_*`' : "`$room`", @{ $room{$room} });
    $sum[$_] += $room{$room}[$_] for 0 .. 4;
}

row('all', @sum);
dead();
exit(@ARGV ? unreached(shift) : 0);


sub row
{
    my ($name, $files, $lines, $ran, $branches, $taken) = @_;

    printf "| %s | %d | %d | %s | %d | %s |\n", $name, $files, $lines,
        share($ran, $lines), $branches, share($taken, $branches);
}


sub share
{
    return $_[1] ? sprintf '%.1f %%', 100 * $_[0] / $_[1] : '-';
}


sub add
{
    my ($unit) = @_;

    for my $f (@{ $unit->{files} }) {
        my $name = $f->{file} =~ m{^/} ? $f->{file}
            : "$unit->{current_working_directory}/$f->{file}";

        # a file that a unit test includes is DIR/../../src/...

        1 while $name =~ s{/(?!\.\./)[^/]+/\.\./}{/};
        next if $name !~ s{^.*/(?=src/)}{} || !-e $name;

        for my $l (@{ $f->{lines} }) {
            my $n = $l->{line_number};
            my @taken = map { $_->{count} } grep { !$_->{throw} }
                @{ $l->{branches} };
            my $b = $branch{$name}{$n} //= [];

            $line{$name}{$n} += $l->{count};
            $b->[$_] = ($b->[$_] // 0) + $taken[$_] for 0 .. $#taken;
        }

        for my $g (@{ $f->{functions} }) {
            my $h = $function{$name}{ $g->{name} }
                //= { at => $g->{start_line}, blocks => $g->{blocks} };

            $h->{ran} += $g->{execution_count};
        }
    }
}


sub dead
{
    my @text;

    for my $name (sort keys %line) {
        my ($from, $to, $size);

        for my $n (sort { $a <=> $b } keys %{ $line{$name} }) {
            if ($line{$name}{$n}) {
                push @text, [ $size, "$name:$from-$to" ] if $size;
                $size = 0;
                next;
            }

            $from = $n if !$size;
            $to = $n;
            $size++;
        }

        push @text, [ $size, "$name:$from-$to" ] if $size;
    }

    open my $out, '>', "$dir/dead.txt" or die "$dir/dead.txt: $!\n";

    for my $name (sort keys %function) {
        for my $f (sort keys %{ $function{$name} }) {
            print $out "$name:$function{$name}{$f}{at} $f() never ran\n"
                if !$function{$name}{$f}{ran};
        }
    }

    printf $out "%4d lines  %s\n", @$_
        for sort { $b->[0] <=> $a->[0] || $a->[1] cmp $b->[1] } @text;
    close $out or die $!;
}


# whether functions are not what the list says

sub unreached
{
    my ($list) = @_;
    my (%listed, %room, %never);

    open my $in, '<', $list or die "$list: $!\n";

    while (<$in>) {
        next if !m{^((src/\w+)/\S+) (\w+)\(\)$};
        $listed{"$1 $3()"} = 1;
        $room{$2} = 1;
    }

    for my $name (grep { m{^(src/\w+)/} && $room{$1} } keys %function) {
        $never{"$name $_()"} = 1
            for grep { !$function{$name}{$_}{ran} } keys %{ $function{$name} };
    }

    my @wrong = (
        (map { "$_ was not reached" } grep { !$listed{$_} } keys %never),
        (map { "$_ was reached" } grep { !$never{$_} } keys %listed));

    print "$_\n" for sort @wrong;

    return @wrong ? 1 : 0;
}
