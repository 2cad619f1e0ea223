package UrlStore::Client;

# A small HTTP/1.1 client over one keep-alive connection, quick enough to load
# a store with.  An answer is
#
#     { status => 200, reason => 'OK', body => '...',
#       headers => { 'content-type' => ..., } }    lower case, joined by ', '
#
# and $answer->json is its body, decoded (undef if it is no JSON).

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use JSON::PP ();
use Socket qw(IPPROTO_TCP TCP_NODELAY);


sub new
{
    my ($class, $host, $port, %o) = @_;

    return bless { host => $host, port => $port, timeout => 60, %o }, $class;
}


sub _connect
{
    my ($host, $port) = @_;

    my $s = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port,
        Proto => 'tcp', Timeout => 10) or return;

    setsockopt($s, IPPROTO_TCP, TCP_NODELAY, 1);
    binmode $s;
    return $s;
}


# A body gets its Content-Length, unless the headers say otherwise.  It may be
# a code reference for a chunked one: called for piece after piece until it
# returns undef.  A connection that the server closed while it was idle is
# opened again, once (not with no_retry => 1 at new); undef if no whole answer
# came.

sub request
{
    my ($self, $method, $path, $body, %h) = @_;

    my $head = "$method $path HTTP/1.1\r\n";
    my $chunks = ref $body ? $body : undef;

    $h{Host} //= 'localhost';

    if ($chunks) {
        $h{'Transfer-Encoding'} = 'chunked';

    } elsif (defined $body || $method eq 'POST') {
        $h{'Content-Length'} //= length($body // '');
    }

    for my $name (sort keys %h) {
        $head .= "$name: $h{$name}\r\n" if defined $h{$name};
    }

    $head .= "\r\n";
    $head .= $body if defined $body && !$chunks;

    for ( ;; ) {
        my $idle = $self->{sock} ? 1 : 0;

        if (!$idle) {
            $self->{sock} = _connect($self->{host}, $self->{port}) or return;
            $self->{buf} = '';
        }

        my $sent = $self->_send($head) && (!$chunks || $self->_chunks($chunks));

        # what the server answers to a body that it did not read to its end
        # arrives as well

        my $r = $self->_read($method);

        $self->disconnect if !$r || !$sent;

        return $r if $r;
        return if !$idle || length $self->{buf} || $chunks
            || $self->{no_retry};
    }
}


sub disconnect
{
    my ($self) = @_;

    close delete $self->{sock} if $self->{sock};
}


sub _send
{
    my ($self, $data) = @_;

    local $SIG{PIPE} = 'IGNORE';

    for (my $at = 0; $at < length $data; ) {
        my $n = syswrite($self->{sock}, $data, 262144, $at);
        return 0 if !defined $n;
        $at += $n;
    }

    return 1;
}


sub _chunks
{
    my ($self, $chunks) = @_;

    while (defined(my $c = $chunks->())) {
        $self->piece($c) or return 0;
    }

    return $self->_send("0\r\n\r\n");
}


# The same by hand, on a connection of its own: the head of a request, pieces of
# its body, and its end, after which the client closes its half if it is to; the
# answer.

sub begin
{
    my ($self, $method, $path, %h) = @_;

    $self->disconnect;
    $self->{sock} = _connect($self->{host}, $self->{port}) or return 0;
    $self->{buf} = '';

    return $self->_send("$method $path HTTP/1.1\r\nHost: localhost\r\n"
        . join('', map { "$_: $h{$_}\r\n" } sort keys %h)
        . "Transfer-Encoding: chunked\r\n\r\n");
}


sub piece
{
    my ($self, $c) = @_;

    return $c eq '' || $self->_send(sprintf("%x\r\n%s\r\n", length $c, $c));
}


sub end
{
    my ($self, $half_close) = @_;

    $self->_send("0\r\n\r\n") or return;
    shutdown $self->{sock}, 1 if $half_close;

    my $r = $self->_read('POST');

    $self->disconnect;

    return $r;
}


# more bytes into buf: their number, 0 at the end, undef at a fault

sub _fill
{
    my ($self) = @_;

    my $sel = IO::Select->new($self->{sock});

    return if !$sel->can_read($self->{timeout});

    return sysread($self->{sock}, $self->{buf}, 262144,
        length $self->{buf});
}


sub _read
{
    my ($self, $method) = @_;

    my $end;

    while (($end = index $self->{buf}, "\r\n\r\n") < 0
           || $self->{buf} =~ m|^HTTP/1\.1 100 |)
    {
        if ($end >= 0) {
            substr $self->{buf}, 0, $end + 4, '';
            next;
        }

        $self->_fill or return;
    }

    my ($first, @lines) = split /\r\n/, substr $self->{buf}, 0, $end + 4, '';
    my ($status, $reason) = $first =~ m|^HTTP/1\.\d (\d{3}) ?(.*)| or return;

    my %h;

    for my $line (@lines) {
        my ($name, $value) = $line =~ /^([^:]+):\s*(.*)/ or next;
        $name = lc $name;
        $h{$name} = exists $h{$name} ? "$h{$name}, $value" : $value;
    }

    my $body = '';

    if ($method eq 'HEAD' || $status == 204 || $status == 304) {
        # none

    } elsif (($h{'transfer-encoding'} // '') =~ /chunked/i) {
        $body = $self->_read_chunked // return;

    } elsif (defined $h{'content-length'}) {
        while (length $self->{buf} < $h{'content-length'}) {
            $self->_fill or return;
        }

        $body = substr $self->{buf}, 0, $h{'content-length'}, '';

    } else {
        while ($self->_fill) { }
        $body = $self->{buf};
        $self->disconnect;
    }

    $self->disconnect if ($h{connection} // '') =~ /close/i;

    return bless { status => $status, reason => $reason, headers => \%h,
        body => $body }, 'UrlStore::Answer';
}


sub _read_chunked
{
    my ($self) = @_;

    my $body = '';

    for ( ;; ) {
        my $eol;

        while (($eol = index $self->{buf}, "\r\n") < 0) {
            $self->_fill or return;
        }

        my $size = hex substr $self->{buf}, 0, $eol;
        my $need = $eol + 2 + $size + 2;

        while (length $self->{buf} < $need) {
            $self->_fill or return;
        }

        $body .= substr $self->{buf}, $eol + 2, $size;
        substr $self->{buf}, 0, $need, '';

        return $body if $size == 0;
    }
}


# Raw bytes out, raw bytes back until the server closes.  Options: parts (a
# list sent piece by piece), pause (seconds after each), half_close, timeout.

sub raw
{
    my ($host, $port, $raw, %o) = @_;

    my $s = _connect($host, $port) or return;
    my $answer = '';

    local $SIG{PIPE} = 'IGNORE';

    for my $part ($o{parts} ? @{ $o{parts} } : $raw) {
        syswrite $s, $part;
        select undef, undef, undef, $o{pause} if $o{pause};
    }

    shutdown $s, 1 if $o{half_close};

    my $sel = IO::Select->new($s);

    while ($sel->can_read($o{timeout} // 10)) {
        sysread($s, $answer, 65536, length $answer) or last;
    }

    close $s;
    return $answer;
}


package UrlStore::Answer;


sub none
{
    my ($class, $why) = @_;

    return bless { status => 0, reason => $why, headers => {}, body => '' },
        $class;
}


sub json
{
    my ($self) = @_;

    return eval { JSON::PP->new->utf8->allow_nonref->decode($self->{body}) };
}


1;
