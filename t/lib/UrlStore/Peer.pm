package UrlStore::Peer;

# The servers that benchmarks compare with: Redis, and Valkey, which began as
# Redis and understands the same commands.
#
#     print about_peers(), "\n";     # Redis 7.0.15; Valkey: not installed here
#
#     for my $peer (peers()) {       # the installed ones
#         my $server = $peer->start($dir);
#         ...
#         $server->stop;
#     }
#
# A server is private: on a socket of its own, without a port, and nothing is
# saved.  Commands are sent without waiting for their replies, which are counted
# afterwards.

use strict;
use warnings;

use base 'Exporter';

use IO::Socket::UNIX;
use POSIX ();
use Time::HiRes qw(sleep time);

our @EXPORT = qw(peers about_peers);

# A server is a name of a program that Debian's redis-tools and valkey-tools
# have; the packages of the servers only add the service.

my @all = map { _peer(@$_) } (
    [ 'Redis', 'redis-server', 'redis-check-rdb' ],
    [ 'Valkey', 'valkey-server', 'valkey-check-rdb' ],
);


# by its name, the one of the program, and other ones that the program may have

sub _peer
{
    my ($name, $called, @files) = @_;
    my $self = bless { name => $name, called => $called }, __PACKAGE__;

    for my $file ($called, @files) {
        ($self->{program}) = grep { -x } map { "$_/$file" }
            split /:/, $ENV{PATH};
        last if $self->{program};
    }

    return $self;
}


sub peers { return grep { $_->{program} } @all }


# a line about all: their versions, or that they are not installed

sub about_peers
{
    return join '; ', map {
        "$_->{name}" . ($_->{program} ? ' ' . $_->_version
            : ': not installed here')
    } @all;
}


sub _version
{
    my ($self) = @_;
    my $pid = open(my $out, '-|') // die "fork: $!";

    $self->_exec('--version') if $pid == 0;

    return <$out> =~ /\bv=(\S+)/ ? $1 : 'of an unknown version';
}


# becomes the program

sub _exec
{
    my ($self, @options) = @_;

    exec { $self->{program} } $self->{called}, @options or POSIX::_exit(127);
}


sub name { $_[0]{name} }


# a server that runs; options: more of its options

sub start
{
    my ($self, $dir, @options) = @_;
    my $server = bless { %$self, path => "$dir/$self->{called}.sock",
        owner => $$ }, ref $self;

    $server->{pid} = fork() // die "fork: $!";

    if ($server->{pid} == 0) {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', '/dev/null';
        $server->_exec('--port', 0, '--unixsocket', $server->{path},
            '--save', '', '--appendonly', 'no', '--dir', $dir, @options);
    }

    for (1 .. 200) {
        last if $server->connect;
        sleep 0.05;
    }

    die "$self->{name} did not start" if !$server->{sock};

    # a signal, too, ends by DESTROY

    $SIG{$_} //= sub { exit 1 } for qw(INT TERM);

    return $server;
}


# begins a new connection; false if there is none

sub connect
{
    my ($self) = @_;

    $self->{sock} = IO::Socket::UNIX->new(Peer => $self->{path});
    $self->{buf} = '';
    $self->{sent} = 0;

    return $self->{sock};
}


sub stop
{
    my ($self) = @_;

    my $pid = delete $self->{pid} // return;

    kill 'TERM', $pid;
    waitpid $pid, 0;
}


# the server does not outlive a program that dies

sub DESTROY
{
    my ($self) = @_;

    return if ($self->{owner} // 0) != $$;

    local ($?, $@);
    $self->stop;
}


sub pid { $_[0]{pid} }


# a command as it goes over the wire

sub wire
{
    return join '', '*' . @_ . "\r\n",
        map { '$' . length($_) . "\r\n$_\r\n" } @_;
}


# sends what wire() made

sub send_wire
{
    my ($self, $data) = @_;

    for (my $at = 0; $at < length $data; ) {
        $at += syswrite($self->{sock}, $data, length($data) - $at, $at)
            // die "$self->{name}: $!";
    }

    $self->{sent}++;
}


# Takes one reply: the value of an integer or a simple string, the text of a
# bulk string, the length of an array of integers.

sub reply
{
    my ($self) = @_;

    $self->{sent}--;

    for ( ;; ) {
        my $buf = \$self->{buf};

        pos($$buf) = 0;

        if ($$buf =~ /\G([:*\$+-])([^\r]*)\r\n/gc) {
            my ($type, $value) = ($1, $2);
            my $left = $type eq '*' ? $value : 0;

            die "$self->{name}: $value" if $type eq '-';

            $left-- while $left && $$buf =~ /\G:\d+\r\n/gc;

            my $end = pos $$buf;

            if ($type eq '$' && $value >= 0) {
                $left = length($$buf) < $end + $value + 2;
                $end += $value + 2;
                $value = substr $$buf, pos $$buf, $value if !$left;
            }

            if (!$left) {
                substr $$buf, 0, $end, '';
                return $value;
            }
        }

        sysread($self->{sock}, $$buf, 262144, length $$buf)
            or die "$self->{name} left";
    }
}


# sends a command; at most `ahead` replies are outstanding

sub pipeline
{
    my ($self, $ahead, @command) = @_;

    $self->reply while $self->{sent} >= $ahead;
    $self->send_wire(wire(@command));
}


sub drain
{
    my ($self) = @_;

    $self->reply while $self->{sent};
}


sub command
{
    my ($self, @command) = @_;

    $self->drain;
    $self->send_wire(wire(@command));
    return $self->reply;
}


# bytes that its data takes, and that the process has from the system

sub memory
{
    my ($self) = @_;

    my ($used) = $self->command('INFO', 'memory') =~ /^used_memory:(\d+)/m;

    open my $fh, '<', "/proc/$self->{pid}/status" or die $!;
    my ($rss) = join('', <$fh>) =~ /^VmRSS:\s+(\d+)/m;

    return ($used, $rss * 1024);
}


1;
