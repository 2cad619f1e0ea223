package UrlStore::Record;

# Clients that keep their own record of what was answered, whatever happens to
# the server meanwhile.
#
#     my $rec = UrlStore::Record->new($t, clients => 2, batch => 20);
#     ... kill, restart ...
#     is_deeply($rec->check, [], 'all that was answered is there');
#     is_deeply([ $rec->finish ], [], 'and whole');
#
# Each client is a process.  It adds batches of URLs that nobody else adds,
# made of real ones, with some that were answered before in between; an answer
# that came whole is written to a file before the next request.  check() reads
# what is new there and compares it with the store (check(1): all of it).  With
# claims => 1 the adds are claims as well, and what was answered is claimed.
#
# Core Perl only.

use strict;
use warnings;

use POSIX qw(:sys_wait_h);
use Time::HiRes qw(sleep);

use UrlStore::Client;
use UrlStore::Test ();


my $SEQUENCE = 0;


# options: clients (2), batch (20 URLs), pause (seconds between requests),
# claims (of a zone with revisit=)

sub new
{
    my ($class, $t, %o) = @_;

    my $self = bless {
        t => $t, clients => 2, batch => 20, pause => 0.002, pids => [],
        url => {}, id => {}, read => {}, answers => 0, %o,
        number => ++$SEQUENCE
    }, $class;

    $self->{lines} //= UrlStore::Test::corpus('trackawesomelist_md', 2000);
    $self->start;

    return $self;
}


sub _file
{
    my ($self, $k) = @_;

    return "$self->{t}{dir}/record.$self->{number}.$k";
}


sub start
{
    my ($self) = @_;

    my $port = $self->{t}->port;
    my $parent = $$;

    for my $k (1 .. $self->{clients}) {
        my $pid = fork() // die "fork: $!";

        if ($pid == 0) {
            $SIG{TERM} = 'DEFAULT';
            eval { $self->_client($k, $port, $parent) };
            POSIX::_exit(0);
        }

        push @{ $self->{pids} }, $pid;
    }
}


sub stop
{
    my ($self) = @_;

    kill 'TERM', @{ $self->{pids} };
    waitpid $_, 0 for @{ $self->{pids} };
    $self->{pids} = [];
}


sub _client
{
    my ($self, $k, $port, $parent) = @_;

    open my $fh, '>>', $self->_file($k) or die "$!";
    $fh->autoflush(1);

    my $n = 0;
    my (@known, $client);
    my $mark = "$$";

    # a test that dies does not leave them behind

    while (getppid() == $parent) {
        my @batch;

        for (1 .. $self->{batch}) {
            my $line = $self->{lines}[rand @{ $self->{lines} }];
            $line =~ s/[#?].*//;
            push @batch, "$line/$mark-" . $n++;
        }

        push @batch, $known[rand @known] for 1 .. (@known ? 3 : 0);

        $client //= UrlStore::Client->new('127.0.0.1', $port, no_retry => 1);

        my $a = eval {
            $client->request('POST', $self->{claims} ? '/add?older=30d'
                : '/add', join("\n", @batch) . "\n");
        };

        if (!$a || $a->{status} != 200) {
            undef $client if !$a;
            sleep 0.005;
            next;
        }

        print $fh $a->{body};

        my @urls = map { (split /\t/)[2] } split /\n/, $a->{body};

        push @known, grep { defined } @urls[0, 1];
        splice @known, 0, 100 if @known > 500;

        sleep $self->{pause} if $self->{pause};
    }
}


# Reads what has been answered since, and asks the store: a list of faults.

sub check
{
    my ($self, $all) = @_;

    my (@faults, @ids);

    for my $k (1 .. $self->{clients}) {
        my $file = $self->_file($k);
        open my $fh, '<', $file or next;
        seek $fh, $self->{read}{$k} // 0, 0;

        while (my $line = <$fh>) {
            last if $line !~ /\n\z/;
            $self->{read}{$k} = tell $fh;

            my ($id, $status, $url) = split /\t/, $line =~ s/\n//r;
            next if $id eq '-';

            my $known = $self->{url}{$id};

            push @faults, "id $id is $url and was $known"
                if defined $known && $known ne $url;
            push @faults, "$url has id $id and had $self->{id}{$url}"
                if defined $self->{id}{$url} && $self->{id}{$url} != $id;
            push @faults, "$url was answered and is new"
                if defined $self->{id}{$url} && $status eq 'new';

            push @ids, $id if !defined $known;
            $self->{url}{$id} = $url;
            $self->{id}{$url} = $id;
            $self->{answers}++;
        }
    }

    @ids = keys %{ $self->{url} } if $all;

    my $t = $self->{t};
    my $client = $t->client;

    while (my @part = splice @ids, 0, 5000) {
        my $a = $client->request('POST',
            $self->{claims} ? '/url?times=1' : '/url',
            join("\n", @part) . "\n", Accept => 'text/plain');

        if (!$a || $a->{status} != 200) {
            push @faults, '/url answers ' . ($a ? $a->{status} : 'nothing');
            last;
        }

        my %left = map { $_ => 1 } @part;

        for my $line (split /\n/, $a->{body}) {
            my ($id, $url, $time) = split /\t/, $line;
            delete $left{$id} if $url eq $self->{url}{$id}
                && (!$self->{claims} || $time ne '-');
        }

        push @faults, map { "id $_ is not $self->{url}{$_}" } keys %left;

        last if @faults > 20;
    }

    return [ @faults > 10 ? @faults[0 .. 9] : @faults ];
}


# ids 0 .. next - 1 all have a URL, and every recorded URL is seen as its id

sub dense
{
    my ($self) = @_;

    my $client = $self->{t}->client;
    my $stats = $client->request('GET', '/stats')->json;
    my @faults;

    for (my $id = 0; $id < $stats->{next_id}; $id += 5000) {
        my $last = $id + 4999;
        $last = $stats->{next_id} - 1 if $last >= $stats->{next_id};

        my $a = $client->request('POST', '/url',
            join("\n", $id .. $last) . "\n", Accept => 'text/plain');
        my $n = grep { /\thttp/ } split /\n/, $a->{body};

        push @faults, "of $id .. $last only $n have a URL"
            if $n != $last - $id + 1;
    }

    my @urls = keys %{ $self->{id} };
    @urls = @urls[0 .. 19_999] if @urls > 20_000;

    while (my @part = splice @urls, 0, 1000) {
        my $a = $client->request('POST', '/seen', join("\n", @part) . "\n");
        my @lines = split /\n/, $a->{body};

        for my $i (0 .. $#part) {
            my ($id, $status) = split /\t/, $lines[$i] // '';

            push @faults, "$part[$i] is " . ($lines[$i] // 'nothing')
                if ($status // '') ne 'seen'
                || $id != $self->{id}{$part[$i]};
        }

        last if @faults > 10;
    }

    return \@faults;
}


# The end: stops the clients and the server, and looks at all that they leave:
# a list of faults.

sub finish
{
    my ($self) = @_;

    my $t = $self->{t};

    $self->stop;

    my @faults = (@{ $self->check(1) }, @{ $self->dense });

    push @faults, 'not stopped' if !$t->stop;

    my $reported =
        `$UrlStore::Test::TOP/build/urlstore verify $t->{dir}/data`;

    return @faults, $? == 0 ? () : $reported;
}


1;
