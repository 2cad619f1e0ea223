package UrlStore::Cpu;

# The CPU time of other processes, as the system counts it.

use strict;
use warnings;

use base 'Exporter';

use POSIX ();

our @EXPORT = qw(cpu_of cpu_since);


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
