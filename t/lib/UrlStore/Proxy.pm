package UrlStore::Proxy;

# A TCP proxy that does harm: before a primary, for its replicas.
#
#     my $proxy = UrlStore::Proxy->new($primary->port);
#
#     $proxy->port                 the port that it listens on
#     $proxy->mode('pass')         passes all
#     $proxy->mode('refuse')       closes each connection
#     $proxy->mode('hang')         passes nothing
#     $proxy->mode('cut 1000')     closes after so many bytes of a reply
#     $proxy->mode('flip 1000')    changes that byte of a reply
#     $proxy->mode('cut ~1000')    the same after up to so many, by chance
#
# A mode is that of new connections; all present ones are closed.  Present ones
# stay, and obey as well, with
#
#     $proxy->now('swallow')       passes what clients send, drops all replies
#     $proxy->now('hang')          passes nothing
#     $proxy->now('pass')
#     $proxy->mode('now pass')     the same

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;


sub new
{
    my ($class, $target) = @_;

    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16,
        ReuseAddr => 1) or die "listen: $!";
    pipe my $out, my $in or die "pipe: $!";
    pipe my $done, my $ack or die "pipe: $!";

    my $pid = fork // die "fork: $!";

    if (!$pid) {
        close $in;
        close $done;
        eval { _serve($listen, $target, $out, $ack) };
        print STDERR "proxy: $@" if $@;
        require POSIX;
        POSIX::_exit(0);
    }

    close $out;
    close $ack;
    $in->autoflush(1);

    return bless { pid => $pid, in => $in, done => $done, main => $$,
        port => $listen->sockport }, $class;
}


sub port { $_[0]{port} }
sub now { my ($self, $mode) = @_; $self->mode("now $mode") }


# returns when the proxy obeys

sub mode
{
    my ($self, $mode) = @_;

    print { $self->{in} } "$mode\n";
    sysread $self->{done}, my $ack, 1;
}


sub DESTROY
{
    my ($self) = @_;

    return if $self->{main} != $$;

    local ($?, $!);
    kill KILL => $self->{pid};
    waitpid $self->{pid}, 0;
}


sub _serve
{
    my ($listen, $target, $control, $ack) = @_;

    my $mode = 'pass';
    my (%peer, %left, %flip, %server);
    my $select = IO::Select->new($listen, $control);

    my $drop = sub {
        for my $s (@_) {
            my $other = delete $peer{$s} or next;
            delete $peer{$other};
            delete @left{$s, $other};
            delete @flip{$s, $other};
            delete @server{$s, $other};
            $select->remove($s, $other);
            close $_ for $s, $other;
        }
    };

    while () {
        for my $s ($select->can_read) {

            if ($s == $control) {
                sysread($control, my $text, 4096) or return;
                ($mode) = (split /\n/, $text)[-1];
                $drop->(grep { $peer{$_} } $select->handles)
                    if $mode !~ s/^now //;
                syswrite $ack, '.';
                last;
            }

            if ($s == $listen) {
                my $client = $listen->accept or next;
                my $server = $mode eq 'refuse' ? undef
                    : IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                        PeerPort => $target);

                if (!$server) {
                    close $client;
                    next;
                }

                @peer{$client, $server} = ($server, $client);
                $server{$server} = 1;
                my ($what, $n) = split ' ', $mode;
                $n = int rand substr $n, 1 if defined $n && $n =~ /^~/;
                $left{$server} = $n if $what eq 'cut';
                $flip{$server} = $n if $what eq 'flip';
                $select->add($client, $server);
                next;
            }

            my $to = $peer{$s} or next;
            my $n = sysread $s, my $data, 65536;

            if (!$n) {
                $drop->($s);
                next;
            }

            next if $mode eq 'hang' || $mode eq 'swallow' && $server{$s};

            if (defined $left{$s}) {
                $data = substr $data, 0, $left{$s};
                $left{$s} -= length $data;
            }

            if (defined $flip{$s}) {
                substr($data, $flip{$s}, 1) ^= "\x10"
                    if $flip{$s} >= 0 && $flip{$s} < length $data;
                $flip{$s} -= length $data;
            }

            while (length $data) {
                my $sent = syswrite $to, $data or last;
                substr($data, 0, $sent) = '';
            }

            $drop->($s) if length $data || defined $left{$s} && !$left{$s};
        }
    }
}


1;
