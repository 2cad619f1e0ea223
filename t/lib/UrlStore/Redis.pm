package UrlStore::Redis;

# A private Redis on a socket of its own, for benchmarks: no port, nothing
# saved.  Commands are sent without waiting for their replies, which are
# counted afterwards.

use strict;
use warnings;

use base 'Exporter';

use IO::Socket::UNIX;
use POSIX ();
use Time::HiRes qw(sleep time);

our @EXPORT_OK = qw(cpu_of cpu_since);


# undef if there is no redis-server; options: more of its options

sub start
{
    my ($class, $dir, @options) = @_;

    my $program = _program() // return;

    my $sock = "$dir/redis.sock";
    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', '/dev/null';
        exec { $program } 'redis-server', '--port', 0, '--unixsocket', $sock,
            '--save', '', '--appendonly', 'no', '--dir', $dir, @options
            or POSIX::_exit(127);
    }

    my $s;

    for (1 .. 200) {
        last if $s = IO::Socket::UNIX->new(Peer => $sock);
        sleep 0.05;
    }

    my $self = bless { pid => $pid, sock => $s, buf => '', sent => 0,
        owner => $$ }, $class;

    die 'redis did not start' if !$s;

    # a signal, too, ends by DESTROY

    $SIG{$_} //= sub { exit 1 } for qw(INT TERM);

    return $self;
}


# The server is a name of a program that Debian's redis-tools has; the package
# redis-server only adds the service.

sub _program
{
    for my $name (qw(redis-server redis-check-rdb)) {
        my @found = grep { -x } map { "$_/$name" } split /:/, $ENV{PATH};

        return $found[0] if @found;
    }

    return;
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
            // die "redis: $!";
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

            die "redis: $value" if $type eq '-';

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
            or die 'redis left';
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


# CPU seconds that processes have taken so far

sub cpu_of
{
    my $sum = 0;

    for my $pid (@_) {
        open my $fh, '<', "/proc/$pid/stat" or die "/proc/$pid/stat: $!";

        my @f = split ' ', <$fh> =~ s/^.*\) //sr;

        $sum += $f[11] + $f[12];
    }

    return $sum / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}


# CPU seconds that processes have taken since cpu_of() returned $before.  The
# system counts ticks: a tick at least, because callers divide by it.

sub cpu_since
{
    my ($before, @pids) = @_;

    my $cpu = cpu_of(@pids) - $before;
    my $tick = 1 / POSIX::sysconf(POSIX::_SC_CLK_TCK());

    return $cpu > $tick ? $cpu : $tick;
}


1;
