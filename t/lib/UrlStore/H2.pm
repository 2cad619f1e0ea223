package UrlStore::H2;

# A small HTTP/2 client (RFC 9113) without TLS, whose flow control the test
# commands: one stream at a time, any window.
#
#     my $h2 = UrlStore::H2->new('127.0.0.1', $port, window => 1);
#     my $r = $h2->request('GET', '/urls', undef, grant => 1);
#
# window is SETTINGS_INITIAL_WINDOW_SIZE: what the server may send of a reply
# before the client grants more.  grant is what a WINDOW_UPDATE adds whenever
# the window is used up.  The answer is that of UrlStore::Client; of its
# headers only those are decoded that nginx sends without Huffman's code.
#
# A frame that the protocol forbids (DATA past the window, or past END_STREAM)
# makes the answer undef, and $h2->{fault} says what it was.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;

use UrlStore::Client;

use constant {
    DATA => 0, HEADERS => 1, RST_STREAM => 3, SETTINGS => 4, PING => 6,
    GOAWAY => 7, WINDOW_UPDATE => 8, END_STREAM => 1, END_HEADERS => 4
};


# names of RFC 7541's static table, and the values that nginx indexes

my @NAMES = (undef, qw(:authority :method :method :path :path :scheme :scheme
    :status :status :status :status :status :status :status accept-charset
    accept-encoding accept-language accept-ranges accept
    access-control-allow-origin age allow authorization cache-control
    content-disposition content-encoding content-language content-length
    content-location content-range content-type cookie date etag expect
    expires from host if-match if-modified-since if-none-match if-range
    if-unmodified-since last-modified link location max-forwards
    proxy-authenticate proxy-authorization range referer refresh retry-after
    server set-cookie strict-transport-security transfer-encoding user-agent
    vary via www-authenticate));

my %STATUS = (8 => 200, 9 => 204, 10 => 206, 11 => 304, 12 => 400, 13 => 404,
    14 => 500);


sub new
{
    my ($class, $host, $port, %o) = @_;

    my $s = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port,
        Proto => 'tcp', Timeout => 10) or return;

    setsockopt($s, 6, 1, 1);                        # TCP_NODELAY
    binmode $s;

    my $self = bless {
        sock => $s, buf => '', timeout => 30, stream => -1,
        window => 65535,               # of each stream, for the server
        may_send => 65535,             # on the connection, for us
        their_window => 65535, %o
    }, $class;

    # the connection's own window is out of the way

    $self->_send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        . _frame(SETTINGS, 0, 0, pack 'nN', 4, $self->{window})
        . _frame(WINDOW_UPDATE, 0, 0, pack 'N', 2**30));

    return $self;
}


sub _frame
{
    my ($type, $flags, $stream, $payload) = @_;

    my $len = length $payload;

    return pack('CnCCN', $len >> 16, $len & 0xffff, $type, $flags, $stream)
        . $payload;
}


sub _send
{
    my ($self, $data) = @_;

    local $SIG{PIPE} = 'IGNORE';

    for (my $at = 0; $at < length $data; ) {
        my $n = syswrite $self->{sock}, $data, length($data) - $at, $at;
        return 0 if !defined $n;
        $at += $n;
    }

    return 1;
}


# type, flags, stream and payload of the next frame; nothing at the end

sub _read
{
    my ($self) = @_;

    for ( ;; ) {
        if (length $self->{buf} >= 9) {
            my ($high, $low, $type, $flags, $stream) = unpack 'CnCCN',
                $self->{buf};
            my $len = $high << 16 | $low;

            if (length $self->{buf} >= 9 + $len) {
                my $frame = substr $self->{buf}, 0, 9 + $len, '';
                return ($type, $flags, $stream, substr $frame, 9);
            }
        }

        my $sel = IO::Select->new($self->{sock});

        $sel->can_read($self->{timeout}) or return;
        sysread($self->{sock}, $self->{buf}, 65536, length $self->{buf})
            or return;
    }
}


# Options among the headers: grant (65536); pause, called before each grant;
# stop, a number of bytes after which the client resets the stream and
# undef is returned; reset, the same by the seconds after a short request.

sub request
{
    my ($self, $method, $path, $body, %h) = @_;

    my %o = map { $_ => delete $h{$_} } qw(grant pause stop reset);
    my $grant = $o{grant} || 65536;
    my $stream = $self->{stream} += 2;
    my $window = $self->{window};
    my $left = $self->{their_window};
    my ($r, $got, $done) = ({ body => '', headers => {}, status => 0 }, 0, 0);

    delete $self->{fault};

    $self->_send(_frame(HEADERS, END_HEADERS
        | (defined $body ? 0 : END_STREAM), $stream,
        join '', map { _literal(@$_) } [ ':method', $method ],
        [ ':scheme', 'http' ], [ ':path', $path ],
        [ ':authority', 'localhost' ], map { [ lc, $h{$_} ] } sort keys %h))
        or return;

    for ( ;; ) {

        # as much of the body as the server takes now

        while (defined $body) {
            my $n = length $body;

            $n = $left if $n > $left;
            $n = $self->{may_send} if $n > $self->{may_send};
            $n = 16384 if $n > 16384;
            last if $n <= 0 && length $body;

            my $part = substr $body, 0, $n, '';
            my $end = $body eq '';

            $left -= $n;
            $self->{may_send} -= $n;
            $self->_send(_frame(DATA, $end ? END_STREAM : 0, $stream, $part))
                or return;
            undef $body if $end;
        }

        if ($o{reset}) {
            select undef, undef, undef, $o{reset};
            $self->_send(_frame(RST_STREAM, 0, $stream, pack 'N', 8));
            return;
        }

        if ($done) {
            return bless $r, 'UrlStore::Answer';
        }

        my ($type, $flags, $id, $payload) = $self->_read;

        if (!defined $type) {
            $self->{fault} = 'the connection ended';
            return;
        }

        if ($type == SETTINGS && !($flags & 1)) {
            while ($payload =~ s/^(..)(....)//s) {
                my ($key, $value) = (unpack('n', $1), unpack 'N', $2);

                if ($key == 4) {
                    $left += $value - $self->{their_window};
                    $self->{their_window} = $value;
                }
            }

            $self->_send(_frame(SETTINGS, 1, 0, ''));

        } elsif ($type == PING && !($flags & 1)) {
            $self->_send(_frame(PING, 1, 0, $payload));

        } elsif ($type == WINDOW_UPDATE) {
            my $n = unpack 'N', $payload;

            if ($id == 0) {
                $self->{may_send} += $n;

            } elsif ($id == $stream) {
                $left += $n;
            }

        } elsif ($type == GOAWAY) {
            $self->{goaway} = 1;

        } elsif ($type == RST_STREAM && $id == $stream) {
            $self->{fault} = 'reset with ' . unpack 'N', $payload;

            # what follows a whole answer is no fault: the rest of the body
            # is not wanted

            return if !$done;

        } elsif ($type == HEADERS && $id == $stream) {
            $r->{headers} = _decode($payload);
            $r->{status} = $r->{headers}{':status'};
            $done = 1 if $flags & END_STREAM;

        } elsif ($type == DATA && $id == $stream) {
            my $n = length $payload;

            if ($n > $window) {
                $self->{fault} = "$n bytes for a window of $window";
                return;
            }

            $r->{body} .= $payload;
            $window -= $n;
            $got += $n;
            $done = 1 if $flags & END_STREAM;

            if ($o{stop} && $got >= $o{stop}) {
                $self->_send(_frame(RST_STREAM, 0, $stream, pack 'N', 8));
                return;
            }

            if (!$done && $window == 0) {
                $o{pause}->() if $o{pause};
                $window += $grant;
                $self->_send(_frame(WINDOW_UPDATE, 0, $stream,
                    pack 'N', $grant));
            }

            $self->_send(_frame(WINDOW_UPDATE, 0, 0, pack 'N', $n))
                if $n;
        }

        if ($done) {
            undef $body;
        }
    }
}


# what the server still sends within the seconds: DATA past the end of a
# stream is a fault, '' is none

sub rest
{
    my ($self, $seconds) = @_;

    local $self->{timeout} = $seconds;

    while (my ($type, $flags, $id, $payload) = $self->_read) {
        return "frame $type with " . length($payload) . " bytes"
            if $type == DATA || $type == HEADERS;
    }

    return '';
}


sub _literal
{
    my ($name, $value) = @_;

    return "\0" . join '', map { _int(127, length) . $_ } $name, $value;
}


sub _int
{
    my ($max, $n) = @_;

    return pack 'C', $n if $n < $max;

    my $s = pack 'C', $max;

    for ($n -= $max; $n >= 128; $n >>= 7) {
        $s .= pack 'C', $n & 127 | 128;
    }

    return $s . pack 'C', $n;
}


sub _decode
{
    my ($block) = @_;

    my %h;

    while (length $block) {
        my $first = ord $block;

        if ($first & 0x80) {
            my $i = _take(\$block, 7);
            $h{$NAMES[$i]} = $STATUS{$i} if $i < @NAMES;
            next;
        }

        if (($first & 0xe0) == 0x20) {
            _take(\$block, 5);                  # a table size
            next;
        }

        my $i = _take(\$block, $first & 0x40 ? 6 : 4);
        my $name = $i ? $NAMES[$i] : _text(\$block);

        $h{$name} = _text(\$block);
    }

    return \%h;
}


sub _take
{
    my ($block, $bits) = @_;

    my $mask = (1 << $bits) - 1;
    my $n = ord(substr $$block, 0, 1, '') & $mask;

    return $n if $n < $mask;

    for (my $shift = 0; ; $shift += 7) {
        my $byte = ord substr $$block, 0, 1, '';

        $n += ($byte & 127) << $shift;
        return $n if $byte < 128;
    }
}


# a string; Huffman's code is left as it is, after a question mark

sub _text
{
    my ($block) = @_;

    my $huffman = ord($$block) & 0x80;
    my $text = substr $$block, 0, _take($block, 7), '';

    return $huffman ? "?$text" : $text;
}


1;
