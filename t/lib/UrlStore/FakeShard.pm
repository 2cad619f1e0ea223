package UrlStore::FakeShard;

# A shard of a cluster that does what a test says, faults included, as a router
# sees it: POST /add and /seen by text, GET and DELETE /url/ID.
#
#     my $shard = UrlStore::FakeShard->new(2, sub {
#         my ($request, $reply) = @_;      # a hash; a reference to a text
#         ...
#         return 'close';                  # or 'hang', or nothing
#     });
#     $shard->port, $shard->requests
#
# The code may change the reply, header and all.  After 'close' the connection
# is closed, after 'hang' nothing is sent.  It is a process with one loop, so
# requests of several connections see one store.
#
# Core Perl only.

use strict;
use warnings;

use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use JSON::PP ();
use POSIX ();


my $json = JSON::PP->new->utf8->canonical;


sub new
{
    my ($class, $number, $alter) = @_;

    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1',
        Proto => 'tcp', Listen => 64) or die "listen: $!";
    my $self = bless { number => $number, alter => $alter // sub { },
        port => $listen->sockport, owner => $$, ids => {}, urls => [],
        sites => {}, dir => tempdir('urlstore-XXXXXXXX', TMPDIR => 1,
            CLEANUP => 1) }, $class;

    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        $SIG{PIPE} = 'IGNORE';
        $SIG{TERM} = 'DEFAULT';
        $self->_serve($listen);
        POSIX::_exit(0);
    }

    $self->{pid} = $pid;

    return $self;
}


sub port { return $_[0]{port} }


# what came so far: method, target, headers, body; those whose JSON matches

sub requests
{
    my ($self, $re) = @_;

    open my $fh, '<', "$self->{dir}/log" or return;

    return map { $json->decode($_) } grep { !$re || $_ =~ $re } <$fh>;
}


sub stop
{
    my ($self) = @_;

    return if $self->{owner} != $$ || !$self->{pid};

    kill 'TERM', $self->{pid};
    waitpid $self->{pid}, 0;
    $self->{pid} = 0;
}


sub DESTROY
{
    my ($self) = @_;

    local ($., $@, $!, $^E, $?);

    $self->stop;
}


sub _serve
{
    my ($self, $listen) = @_;

    my $select = IO::Select->new($listen);
    my %in;

    open my $log, '>>', "$self->{dir}/log" or die $!;
    $log->autoflush(1);

    while (getppid() == $self->{owner}) {
        for my $c ($select->can_read(1)) {

            if ($c == $listen) {
                my $client = $listen->accept or next;
                $select->add($client);
                $in{$client} = '';
                next;
            }

            if (!sysread $c, $in{$c}, 65536, length $in{$c}) {
                $select->remove($c);
                delete $in{$c};
                close $c;
                next;
            }

            while (my $request = _request(\$in{$c})) {
                print $log $json->encode($request), "\n";

                my $reply = $self->_reply($request);
                my $then = $self->{alter}->($request, \$reply) // '';

                next if $then eq 'hang';

                syswrite $c, $reply;
                next if $then ne 'close';

                $select->remove($c);
                delete $in{$c};
                close $c;
                last;
            }
        }
    }
}


sub _request
{
    my ($in) = @_;

    return undef if !defined $$in
        || $$in !~ /^(\w+) (\S+) HTTP[^\n]*\n(.*?)\r\n\r\n/s;

    my ($method, $target, $fields, $end) = ($1, $2, $3, $+[0]);
    my %headers = map { /^([^:]+): (.*)/ ? (lc $1 => $2) : () }
        split /\r\n/, $fields;
    my $len = $headers{'content-length'} // 0;

    return undef if length $$in < $end + $len;

    my $body = substr $$in, $end, $len;
    substr $$in, 0, $end + $len, '';

    return { method => $method, target => $target, headers => \%headers,
        body => $body };
}


sub _reply
{
    my ($self, $r) = @_;

    my ($path, $args) = split /\?/, $r->{target};
    my ($status, $text) = (404, '');

    if ($path =~ m{^/(add|seen)$}) {
        my $action = $1;
        my $sites = $args =~ /sites=1/;
        my $next = $self->{number} << 40 | @{ $self->{urls} };

        $text = join '', map { $self->_item($action, $_, $sites) }
            split /\n/, $r->{body};
        $text .= "# new=0 seen=0 unseen=0 errors=0 next_id=$next epoch="
            . (10 + $self->{number}) . "\n";
        $status = 200;

    } elsif ($path =~ m{^/url/(\d+)$}) {
        my $local = $1 % (1 << 40);
        my $url = $self->{urls}[$local];

        if ($1 >> 40 != $self->{number}) {
            $status = 421;

        } elsif (defined $url && $r->{method} eq 'DELETE') {
            $status = 204;
            delete $self->{ids}{$url};
            $self->{urls}[$local] = '';

        } elsif (defined $url) {
            ($status, $text) = $url ne '' ? (200, "$url\n") : (410, "gone\n");
        }
    }

    my $length = $status == 204 ? '' : "Content-Length: " . length($text)
        . "\r\n";

    return "HTTP/1.1 $status X\r\nContent-Type: text/plain\r\n$length"
        . "Urlstore-Map: " . ($r->{headers}{'urlstore-map'} // '') . "\r\n"
        . "ETag: \"e\"\r\nCache-Control: no-cache\r\n\r\n$text";
}


# one URL; the site's first spelling, with www. or without, stays

sub _item
{
    my ($self, $action, $url, $sites) = @_;

    my ($scheme, $www, $host, $rest) = $url =~ m{^(\w+://)(www\.)?([^/]+)(.*)};
    my $known = defined $self->{sites}{$host};

    $url = $scheme . ($self->{sites}{$host} // $www // '') . $host . $rest;

    my $id = $self->{ids}{$url};
    my $site = $known ? 'known' : 'new';
    my $status = 'seen';

    if (!defined $id && $action eq 'add') {
        $status = 'new';
        $id = $self->{ids}{$url} = $self->{number} << 40 | @{ $self->{urls} };
        push @{ $self->{urls} }, $url;
        $self->{sites}{$host} //= $www // '';

    } elsif (!defined $id) {
        $status = 'unseen';
        $id = '-';

    } else {
        $site = 'known';
    }

    return join("\t", $id, $status, $url, $sites ? "site-$site" : ()) . "\n";
}


1;
