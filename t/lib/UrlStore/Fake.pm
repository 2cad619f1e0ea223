package UrlStore::Fake;

# An HTTP server that does what a script says, faults included, for the tests
# of the clients.
#
#     my $fake = UrlStore::Fake->new(sub { my ($name, $n) = @_; ... });
#     ... requests to http://127.0.0.1:PORT/WHO/NAME/add ...
#     my @requests = $fake->requests('WHO/NAME');
#
# The code gets NAME, n and the target of the n-th request (from 0) below
# /WHO/NAME and returns its step, or nothing for the answer 500.  A step may be
# code, which gets the body and returns the step.
# clients/README.md describes the steps.
#
# A step with `forward` sends the request to that port of this machine, and
# answers what came back, unless it drops it.  With `keyless` it leaves out the
# Idempotency-Key, as if the next try came to another service.
#
# Each connection has a process of its own.  A log for each WHO/NAME, which
# they lock, numbers the requests.
#
# Core Perl only.

use strict;
use warnings;

use Fcntl qw(:flock);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use IO::Uncompress::Gunzip qw(gunzip);
use JSON::PP ();
use POSIX ();
use Socket qw(SOL_SOCKET SO_LINGER);
use Time::HiRes qw(sleep time);

use UrlStore::Client;

my $json = JSON::PP->new->utf8->canonical->allow_nonref;


sub new
{
    my ($class, $script) = @_;

    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1',
        Proto => 'tcp', Listen => 64) or die "listen: $!";
    my $self = bless { script => $script, port => $listen->sockport,
        dir => tempdir('urlstore-XXXXXXXX', TMPDIR => 1), owner => $$ },
        $class;

    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        $SIG{CHLD} = 'IGNORE';
        $SIG{PIPE} = 'IGNORE';
        $SIG{TERM} = 'DEFAULT';
        $self->_serve($listen, getppid());
        POSIX::_exit(0);
    }

    $self->{pid} = $pid;
    close $listen;

    return $self;
}


sub port { return $_[0]{port} }


# what came below /WHO/NAME, in order: method, target, headers, json (or
# body), connection (a number for each)

sub requests
{
    my ($self, $key) = @_;

    open my $fh, '<', $self->_log($key) or return;

    return map { $json->decode($_) } <$fh>;
}


sub DESTROY
{
    my ($self) = @_;

    return if $$ != $self->{owner};

    local $?;
    kill 'TERM', $self->{pid};
    waitpid $self->{pid}, 0;
    remove_tree($self->{dir});
}


sub _log
{
    my ($self, $key) = @_;

    return "$self->{dir}/" . $key =~ s{/}{+}gr;
}


# Leaves by itself when the test that started it has gone.

sub _serve
{
    my ($self, $listen, $parent) = @_;

    my $number = 0;

    while (getppid() == $parent) {
        vec(my $ready = '', fileno $listen, 1) = 1;
        select($ready, undef, undef, 1) or next;

        my $s = $listen->accept or next;

        $number++;
        my $pid = fork() // die "fork: $!";

        if ($pid == 0) {
            close $listen;
            $self->_connection($s, $number);
            POSIX::_exit(0);
        }

        close $s;
    }
}


sub _connection
{
    my ($self, $s, $number) = @_;

    my $buf = '';

    alarm 60;
    binmode $s;

    while (my $r = _head($s, \$buf)) {
        my ($key, $target) = $r->{target} =~ m{^/([^/]+/[^/]+)(/.*)} or last;

        $r->{target} = $target;
        $r->{connection} = $number;

        # the step says whether the body is read before the answer

        my $n = $self->_count($key);
        my $step = $self->{script}->($key =~ s{.*/}{}r, $n, $target)
            // { status => 500, text => 'unexpected' };

        if (ref $step eq 'CODE' || !$step->{early}) {
            _body($s, \$buf, $r) or last;
        }

        $step = $step->($r->{body}) if ref $step eq 'CODE';

        $step = _forward($step, $r) // last if $step->{forward};
        $self->_record($key, $n, $r);

        _step($s, $step) or last;

        last if $step->{early} || $r->{once};
    }

    close $s;
}


# the number of this request, from 0

sub _count
{
    my ($self, $key) = @_;

    open my $fh, '+>>', $self->_log($key) . '.count' or die "open: $!";
    flock $fh, LOCK_EX;
    seek $fh, 0, 0;
    my $n = () = <$fh>;
    print $fh "\n";
    close $fh;

    return $n;
}


sub _record
{
    my ($self, $key, $n, $r) = @_;

    my $body = delete $r->{body} // '';

    if (($r->{headers}{'content-encoding'} // '') eq 'gzip') {
        gunzip(\(my $packed = $body), \$body);
    }

    $r->{json} = eval { $json->decode($body) } if length $body;
    $r->{n} = $n;

    open my $fh, '>>', $self->_log($key) or die "open: $!";
    flock $fh, LOCK_EX;
    print $fh $json->encode($r), "\n";
    close $fh;
}


sub _fill
{
    my ($s, $buf) = @_;

    return sysread($s, $$buf, 65536, length $$buf);
}


sub _head
{
    my ($s, $buf) = @_;

    while ($$buf !~ /\r\n\r\n/) {
        _fill($s, $buf) or return;
    }

    my ($head) = $$buf =~ s/^(.*?)\r\n\r\n//s ? $1 : return;
    my ($first, @lines) = split /\r\n/, $head;
    my ($method, $target, $version) = split / /, $first;
    my %h = map { /^([^:]+):\s*(.*)/ ? (lc $1, $2) : () } @lines;

    return { method => $method, target => $target, headers => \%h,
        once => $version eq 'HTTP/1.0' };
}


sub _body
{
    my ($s, $buf, $r) = @_;

    my $length = $r->{headers}{'content-length'} // 0;

    if (($r->{headers}{expect} // '') eq '100-continue') {
        syswrite $s, "HTTP/1.1 100 Continue\r\n\r\n";
    }

    while (length $$buf < $length) {
        _fill($s, $buf) or return 0;
    }

    $r->{body} = substr $$buf, 0, $length, '';
    return 1;
}


# the step with the answer of another server

sub _forward
{
    my ($step, $r) = @_;

    my %h = map { $_ => $r->{headers}{$_} }
        qw(content-type content-encoding accept idempotency-key);

    delete $h{'idempotency-key'} if $step->{keyless};

    my $answer = UrlStore::Client->new('127.0.0.1', $step->{forward})
        ->request($r->{method}, $r->{target}, $r->{body}, %h) // return;

    return { %$step, status => $answer->{status}, text => $answer->{body},
        headers => { map { ucfirst $_ => $answer->{headers}{$_} }
            grep { exists $answer->{headers}{$_} }
            qw(content-type retry-after) } };
}


# does the step; false if the connection ends

sub _step
{
    my ($s, $step) = @_;

    my $drop = $step->{drop} // '';

    sleep $step->{hang} if $step->{hang};
    return 0 if $drop eq 'sent' || $step->{hang};

    my $status = $step->{status} // 200;
    my $type = 'text/plain';
    my $body = $step->{text} // '';

    if ($step->{json}) {
        ($type, $body) = ('application/json', $json->encode($step->{json}));

    } elsif ($step->{ndjson}) {
        $type = 'application/x-ndjson';
        $body = join '', map { $json->encode($_) . "\n" }
            @{ $step->{ndjson} };

    } elsif ($step->{problem}) {
        $type = 'application/problem+json';
        $body = $json->encode($step->{problem});
    }

    my %h = ('Content-Type' => $type, 'Content-Length' => length $body,
        %{ $step->{headers} // {} });

    $h{'Content-Type'} = delete $h{'Content-type'} if $h{'Content-type'};

    if ($step->{date}) {
        $h{'Retry-After'} = POSIX::strftime('%a, %d %b %Y %H:%M:%S GMT',
            gmtime(time + $step->{date}));
    }

    if ($drop eq 'chunked') {
        delete $h{'Content-Length'};
        $h{'Transfer-Encoding'} = 'chunked';
        $body = sprintf "%x\r\n%s", length $body, $body;
    }

    delete $h{'Content-Length'} if $status == 204;
    $h{Connection} = 'close' if $step->{early};

    my $head = "HTTP/1.1 $status Status\r\n"
        . join('', map { "$_: $h{$_}\r\n" } sort keys %h) . "\r\n";

    $body = substr $body, 0, length($body) / 2 if $drop;
    syswrite $s, $head . $body;

    return 0 if $drop;

    if ($step->{early}) {
        # lets the client read: a body in the kernel would cause a reset

        shutdown $s, 1;
        my $rest = '';
        alarm 5;
        1 while _fill($s, \$rest);
        return 0;
    }

    if ($step->{idle}) {
        sleep 0.1;
        return 0;
    }

    return 1;
}


1;
