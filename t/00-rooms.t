#!/usr/bin/perl

# The order of the rooms of src/: no file includes one of a room above its own,
# and within a room no files depend on each other in a circle.
#
# A file depends on those it includes, and on those that define the functions
# it calls (nm).  X.c and X.h count as one file.  The header of several files,
# which share an X_private.h, counts as a file of its own.  So does each header
# of src/http, where several files share one.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(basename dirname);
use Test::More;

chdir abs_path(dirname(__FILE__) . '/..') or die $!;

# from the ground up: a room may include those before it

my @rooms = ('', qw(url input cluster journal filter replog postgres zone codec
    store life api cli http route));

# of src/FOLDER/X.c: build/obj/FOLDER/X.o, or that of the module's build

my %objects = (http => 'build/nginx/addon/http',
    route => 'build/nginx/addon/route', postgres => 'build/asan/postgres');

my %floor = map { $rooms[$_] => $_ } 0 .. $#rooms;

my %shared = map { (s/_private\.h$/.h/r => 1) } glob 'src/*/*_private.h';

my (%includes, @upward);

for my $file (glob 'src/*.[ch] src/*/*.[ch]') {
    my $room = room($file);

    for my $name (slurp($file) =~ /^#\s*include\s+"([^"]+)"/mg) {
        my $to = target($file, $name) or next;

        push @{$includes{$file}}, $to;

        next if $file =~ m{^src/ngx_};

        push @upward, "$file includes $to"
            if $floor{room($to)} > $floor{$room};
    }
}

is(join(' ', grep { !exists $floor{$_} } map { room("$_/x") }
    grep { -d } glob 'src/*'), '', 'each folder is a room');
is(join(' ', grep { !m{^src/(?:http/|route/|ngx_)}
        && slurp($_) =~ /include.*\bngx_/ }
    glob 'src/*.[ch] src/*/*.[ch]'), '', 'no nginx header in the core');
is(join("\n", @upward), '', 'no file includes one of a room above it');

for my $room (@rooms) {
    my (%edge, %home, %uses);

    for my $file (grep { room($_) eq $room } keys %includes) {
        $edge{node($file)}{node($_)} = 1
            for grep { room($_) eq $room } @{$includes{$file}};
    }

    my $objects = $objects{$room} // (path($room) =~ s{^src}{build/obj}r);

    for my $object (glob "$objects/*.o") {
        my $file = path($room, basename($object) =~ s/o$/c/r);

        next if !-e $file;

        for (split /\n/, `nm $object`) {
            my ($kind, $name) = /([A-Za-z]) (\w+)$/ or next;

            $home{$name} = node($file) if $kind =~ /[TDRBC]/;
            push @{$uses{node($file)}}, $name if $kind eq 'U';
        }
    }

    for my $from (keys %uses) {
        $edge{$from}{$home{$_}} = 1 for grep { $home{$_} } @{$uses{$from}};
    }

    is(join("\n", circles(\%edge)), '', "no circle in src/$room");
}

done_testing();


sub path
{
    my ($room, $name) = @_;

    return join '/', grep { $_ ne '' } 'src', $room, $name // ();
}


sub room
{
    my ($file) = @_;

    return dirname($file) =~ s{^src/?}{}r;
}


sub node
{
    my ($file) = @_;

    return $file if $shared{$file}
        || $file =~ m{^src/(?:http|route)/.*\.h$};

    return $file =~ s/\.[ch]$//r;
}


# where an include leads: from the file's folder, or from src/

sub target
{
    my ($file, $name) = @_;

    for my $dir (dirname($file), 'src', 'src/http') {
        my $path = "$dir/$name";

        1 while $path =~ s{[^/]+/\.\./}{};

        return $path if -e $path;
    }

    return undef;
}


# what is left when files without dependencies are taken away, again and again

sub circles
{
    my ($edge) = @_;

    my %left = map { $_ => 1 } keys %$edge;

    delete $edge->{$_}{$_} for keys %$edge;

    for my $turned (0, 1) {
        my %into;

        for my $from (keys %$edge) {
            $into{$turned ? $_ : $from}{$turned ? $from : $_} = 1
                for keys %{$edge->{$from}};
        }

        my $gone;

        do {
            $gone = 0;

            for my $n (keys %left) {
                next if grep { $left{$_} } keys %{$into{$n}};
                delete $left{$n};
                $gone = 1;
            }
        } while $gone;
    }

    return map { my $n = $_; join ' ', "$n ->", map { basename($_) } sort
        grep { $left{$_} } keys %{$edge->{$n}} } sort keys %left;
}


sub slurp
{
    my ($file) = @_;

    local $/;
    open my $fh, '<', $file or die "$file: $!";

    return scalar <$fh>;
}
