package Source;

# A public repository at one commit, as a bare git repository on this machine:
# one of a mirror, or one that is fetched.
#
#     my $s = Source->new('owner/name', $commit, $dir);
#     $s->each_file('data', qr/\.csv$/, sub { my ($path, $bytes) = @_; ... });
#
# The environment: MIRROR=DIR has bare repositories as DIR/OWNER+NAME or
# DIR/OWNER+NAME/repo.
#
# Core Perl and git only.

use strict;
use warnings;

use IPC::Open2;

# Files that are larger are left out, wherever they come from: some mirrors do
# not have them.

my $LARGEST = 4 << 20;


# The repository is fetched below the directory dir unless there is a mirror.
# Options: history (1: the whole history is needed, 0).

sub new
{
    my ($class, $name, $commit, $dir, %o) = @_;

    my $self = bless { name => $name, commit => $commit }, $class;

    $self->{git} = $ENV{MIRROR} ? $self->_mirrored : $self->_fetched($dir, %o);

    return $self;
}


sub _mirrored
{
    my ($self) = @_;

    my $dir = "$ENV{MIRROR}/" . ($self->{name} =~ s{/}{+}r);

    for my $git ($dir, "$dir/repo") {
        next if !-d "$git/objects";

        $self->{git} = $git;
        return $git if $self->_has_commit;

        die "$git does not have the commit $self->{commit}\n";
    }

    die "MIRROR: no bare repository $dir\n";
}


sub _fetched
{
    my ($self, $dir, %o) = @_;

    my $git = "$dir/" . ($self->{name} =~ s{/}{+}r);
    my @depth = $o{history} ? () : ('--depth', 1);

    $self->{git} = $git;

    return $git if -d "$git/objects" && $self->_has_commit;

    print STDERR "fetching $self->{name}\n";

    system('git', 'init', '-q', '--bare', $git) == 0
        && system($self->_git('fetch', '-q', @depth,
            "https://github.com/$self->{name}", $self->{commit})) == 0
        or die "$self->{name} could not be fetched\n";

    return $git;
}


# A repository of another user is read all the same: only objects are.

sub _git
{
    my ($self, @command) = @_;

    return ('git', '-c', 'safe.directory=*', "--git-dir=$self->{git}",
        @command);
}


sub _has_commit
{
    my ($self) = @_;

    return system($self->_git('cat-file', '-e', "$self->{commit}^{commit}"))
        == 0;
}


# Removes what was fetched.

sub forget
{
    my ($self) = @_;

    system('rm', '-rf', $self->{git}) if !$ENV{MIRROR};
}


# Calls code->(path, bytes) for each file below a folder ('' for all) whose
# path matches, in the order of the tree.

sub each_file
{
    my ($self, $folder, $match, $code, %o) = @_;

    my @under = $folder ne '' ? ("$folder/") : ();

    open my $tree, '-|', $self->_git('ls-tree', '-r', '-z', $self->{commit},
        @under) or die "git: $!";

    local $/ = "\0";
    my @files;

    while (<$tree>) {
        chomp;
        my ($blob, $path) = /^\d+ blob (\w+)\t(.*)$/s or next;
        push @files, [ $path, $blob ] if $path =~ $match;
    }

    close $tree or die "$self->{name}: git ls-tree failed\n";
    @files = $o{order}->(@files) if $o{order};

    $self->each_blob(\@files, $code);
}


# the same for a list of [ path, blob ]

sub each_blob
{
    my ($self, $files, $code) = @_;

    my $pid = open2(my $out, my $in, $self->_git('cat-file', '--batch'));

    binmode $_ for $in, $out;
    local $/ = "\n";

    for my $file (@$files) {
        print $in "$file->[1]\n";
        $in->flush;

        my $head = <$out> // die "$self->{name}: git cat-file failed\n";
        my ($size) = $head =~ /^\w+ blob (\d+)$/ or next;

        read($out, my $bytes, $size) == $size && read($out, my $end, 1)
            or die "$self->{name}: $file->[0] is cut short\n";

        $code->($file->[0], $bytes) if $size <= $LARGEST;
    }

    close $in;
    close $out;
    waitpid $pid, 0;
}


# one file

sub file
{
    my ($self, $path) = @_;

    open my $fh, '-|:raw', $self->_git('show', "$self->{commit}:$path")
        or die "git: $!";
    local $/;
    my $bytes = <$fh>;
    close $fh or die "$self->{name} has no $path\n";

    return $bytes;
}


1;
