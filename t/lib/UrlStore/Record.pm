package UrlStore::Record;

# Clients that keep their own record of what was answered, whatever happens to
# the server meanwhile.
#
#     my $rec = UrlStore::Record->new($t, clients => 2, batch => 20);
#     ... kill, restart ...
#     no_faults($rec->check, 'all that was answered is there');
#     no_faults([ $rec->finish ], 'and whole');
#
# Each client is a process.  It adds batches of URLs that nobody else adds,
# made of real ones, with some that were answered before in between; an answer
# that came whole is written to a file before the next request.  check() reads
# what is new there and compares it with the store (check(1): all of it).  With
# claims => 1 the adds are claims as well, and what was answered is claimed.
#
# With sets => N, of a zone with sets_create=auto, most requests are about sets
# instead.  N sets are of all clients, which add the same URLs to the same sets
# at the same time; one more is of each client alone, which also takes URLs out
# of it, and drops it.  A client repeats such a request with its key until it is
# answered.  So of all answers for a URL and a set exactly one is `new`, since
# the set was made or the URL taken out; who is answered `seen` comes after
# that; and the sets have these URLs and no others.
#
# With erase => 1 a client erases some of what it has added.  What was answered
# `erased` is refused from then on, and its id has no URL.
#
# Core Perl only.

use strict;
use warnings;

use POSIX qw(:sys_wait_h);
use Time::HiRes qw(sleep time);

use UrlStore::Client;
use UrlStore::Test ();


my $SEQUENCE = 0;


# options: clients (2), batch (20 URLs), pause (seconds between requests),
# claims (of a zone with revisit=), sets (how many, 0), erase

sub new
{
    my ($class, $t, %o) = @_;

    my $self = bless {
        t => $t, clients => 2, batch => 20, pause => 0.002, pids => [],
        url => {}, id => {}, read => {}, answers => 0, sets => 0, set => {},
        fresh => {}, lost => {}, new => 0, seen => 0, gone => {}, %o,
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
            $SIG{TERM} = $self->{sets} ? sub { $self->{end} //= time }
                : 'DEFAULT';
            eval { $self->_client($k, $port, $parent) };
            warn $@ if $@;
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

    srand($$);

    # a test that dies does not leave them behind

    while (getppid() == $parent && !$self->{end}) {
        my @batch;

        if ($self->{sets} && rand() < 0.7) {
            $self->_sets($k, $port, $parent);
            sleep $self->{pause} if $self->{pause};
            next;
        }

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

        $self->_erase($k, $client, grep { m{/\Q$mark\E-\d} }
            (split /\n/, $a->{body})[2, 3]) if $self->{erase} && rand() < 0.2;

        sleep $self->{pause} if $self->{pause};
    }
}


# Erases what lines of an answer name.  Its record has each before it is sent,
# and once it is answered: what a killed worker was asked may be erased or not.

sub _erase
{
    my ($self, $k, $client, @lines) = @_;

    open my $fh, '>>', $self->_file("$k.erased") or die "$!";
    $fh->autoflush(1);

    my %url = map { (split /\t/)[0, 2] } grep { /^\d/ } @lines or return;

    print $fh map { "sent\t$_\t$url{$_}\n" } keys %url;

    my $a = eval {
        $client->request('POST', '/erase',
            join('', map { "$_\n" } keys %url),
            'Content-Type' => 'text/plain');
    };

    return if !$a || $a->{status} != 202;

    for (split /\n/, $a->{body}) {
        my ($id, $status) = split /\t/;
        print $fh "erased\t$id\t$url{$id}\n" if ($status // '') eq 'erased';
    }
}


# the whole lines, as lists of columns, that a record has since the last time

sub _read
{
    my ($self, $record) = @_;
    my @lines;

    open my $fh, '<', $self->_file($record) or return;
    seek $fh, $self->{read}{$record} // 0, 0;

    while (my $line = <$fh>) {
        last if $line !~ s/\n\z//;
        $self->{read}{$record} = tell $fh;
        push @lines, [ split /\t/, $line ];
    }

    return @lines;
}


# What clients have erased: id => its URL, or '' if that was not answered.

sub _gone
{
    my ($self) = @_;

    for my $line (map { $self->_read("$_.erased") } 1 .. $self->{clients}) {
        my ($state, $id, $url) = @$line;
        $self->{gone}{$id} = $state eq 'erased' ? $url : '';
    }

    return $self->{gone};
}


# Of those that were answered `erased` ($all; or some of them): each is refused.

sub _check_gone
{
    my ($self, $all) = @_;

    my $gone = $self->_gone;
    my @ids = grep { length $gone->{$_} } keys %$gone;
    my @faults;

    splice @ids, 100 if !$all;

    while (my @part = splice @ids, 0, 1000) {
        my $a = $self->{t}->client->request('POST', '/add',
            join('', map { "$gone->{$_}\n" } @part),
            'Content-Type' => 'text/plain');

        push @faults, '/add of erased URLs: ' . ($a ? $a->{status} : 'nothing')
            if !$a || $a->{status} != 200;
        push @faults, map { "was erased: $_" }
            grep { !/^-\trefused\t/ && !/^#/ } split /\n/, $a ? $a->{body} : '';

        $a = $self->{t}->client->request('POST', '/url',
            join('', map { "$_\n" } @part), Accept => 'text/plain');
        push @faults, map { "has its URL and was erased: $_" }
            grep { /\thttp/ } split /\n/, $a ? $a->{body} : '';
    }

    return @faults;
}


# The answer to a request about a set, and how often it was sent; nothing if it
# is not answered within 20 seconds after the end.

sub _sure
{
    my ($self, $port, $parent, @request) = @_;

    for (my $n = 1;
        getppid() == $parent && (!$self->{end} || time < $self->{end} + 20);
        $n++)
    {
        $self->{sure} //=
            UrlStore::Client->new('127.0.0.1', $port, no_retry => 1);

        my $a = eval { $self->{sure}->request(@request) };

        return ($a, $n) if $a && $a->{status} < 500;

        delete $self->{sure} if !$a;
        sleep 0.01;
    }

    return;
}


# A line of its record: set, id, status, URL.

sub _sets
{
    my ($self, $k, $port, $parent) = @_;

    open my $fh, '>>', $self->_file("$k.sets") or die "$!";

    my $own = "own-$k";
    my $mine = $self->{mine} //= {};
    my $what = rand;

    if (%$mine && $what < 0.04) {
        my ($a) = $self->_sure($port, $parent, 'DELETE', "/set/$own", undef);

        die "DELETE /set/$own: $a->{status}" if $a && $a->{status} !~ /^[24]04/;
        print $fh join("\t", $own, '-', $a ? 'dropped' : 'lost', ''), "\n";
        $self->{mine} = {};
        return;
    }

    if (%$mine && $what < 0.12) {
        my @ids = grep { rand() < 0.3 } keys %$mine or return;
        my ($a, $n) = $self->_sure($port, $parent, 'POST',
            "/set/$own?remove=1", join('', map { "$_\n" } @ids),
            'Content-Type' => 'text/plain');

        if (!$a) {
            print $fh "$own\t-\tlost\t\n";
            return;
        }

        for (split /\n/, $a->{body}) {
            my ($id, $status, $url) = split /\t/;

            $status = 'out' if $status eq 'unseen' && $n > 1;
            print $fh "$own\t$id\t$status\t$url\n";
            delete $mine->{$id};
        }

        return;
    }

    # for a fortieth of a second a fortieth of the sets, and for two seconds
    # twenty URLs, with those of a second ago, whose ids are lower

    my $part = $self->{sets} / 40;
    my $shared = $what < 0.8;
    my $set = !$shared ? $own : 's-'
        . int(int(time * 40) * $part + rand $part) % $self->{sets};
    my @lines = map {
        my $at = int(time) - int rand 2;
        $self->{lines}[($at * 20 + rand 20) % @{ $self->{lines} }]
            =~ s/[#?].*//r . "/$at"
    } 1 .. 20;
    my $key = join '-', $$, $k, ++$self->{key};

    my ($a) = $self->_sure($port, $parent, 'POST', "/add?set=$set",
        join('', map { "$_\n" } @lines), 'Content-Type' => 'text/plain',
        'Idempotency-Key' => qq("$key"));

    if (!$a || $a->{status} != 200) {
        die "/add?set=$set: $a->{status} $a->{body}" if $a;
        print $fh "$set\t-\tlost\t\n";
        return;
    }

    for (split /\n/, $a->{body}) {
        my ($id, $status, $url) = split /\t/;

        next if $id eq '-';
        print $fh "$set\t$id\t$status\t$url\n";
        $mine->{$id} = 1 if !$shared;
    }
}


# What the clients were answered about sets since the last time, and whether the
# sets have it.  At the end ($all), when no client is at work, whether they have
# just that.

sub _check_sets
{
    my ($self, $all) = @_;

    my $sets = $self->{set};
    my @faults;

    my $unsaid = sub {
        my ($set) = @_;

        push @faults, map { "$_ is seen in $set and was new to nobody" }
            grep { !$sets->{$set}{$_}[0] } keys %{ $sets->{$set} }
            if !$self->{lost}{$set};
    };

    for my $line (map { $self->_read("$_.sets") } 1 .. $self->{clients}) {
        my ($set, $id, $status, $url) = @$line;

        if ($status eq 'dropped' || $status eq 'lost') {
            $unsaid->($set);
            $self->{lost}{$set} = 1 if $status eq 'lost';
            delete $sets->{$set} if $status eq 'dropped';
            next;
        }

        my $had = $sets->{$set}{$url} //= [ 0, $id ];

        $self->{answers}++;

        push @faults, "$url has the ids $had->[1] and $id"
            if $had->[1] != $id;

        if ($status eq 'new') {
            push @faults, "$url is new twice to $set" if $had->[0]++;
            push @{ $self->{fresh}{$set} }, $url if $set =~ /^s-/;
            $self->{new}++;

        } elsif ($status eq 'seen') {
            push @faults, "$url is seen in $set, from before"
                if $set !~ /^s-/ && !$had->[0];
            $self->{seen}++;

        } else {
            push @faults, "$url is $status, of $set"
                if $status ne 'out' || !$had->[0];
            delete $sets->{$set}{$url};
        }
    }

    my $client = $self->{t}->client;

    for my $set ($all ? () : keys %{ $self->{fresh} }) {
        my $urls = delete $self->{fresh}{$set};
        my $a = $client->request('POST', "/seen?set=$set",
            join('', map { "$_\n" } @$urls), 'Content-Type' => 'text/plain');

        push @faults, !$a || $a->{status} != 200 ? "no answer about $set"
            : map { "not in $set: $_" } grep { !/^\d+\tseen\t/ }
              split /\n/, $a->{body};
    }

    for my $set ($all ? keys %$sets : ()) {
        next if $self->{lost}{$set};

        my $a = $client->request('GET', "/urls?set=$set&limit=1000000");
        my %left = map { $_ => 1 } keys %{ $sets->{$set} };

        $unsaid->($set);
        push @faults, "no URLs of $set" if !$a || $a->{status} != 200;

        for (split /\n/, $a ? $a->{body} : '') {
            my ($id, $url) = split /\t/;

            push @faults, "$url ($id) is in $set"
                if !delete $left{$url} || $sets->{$set}{$url}[1] != $id;
        }

        push @faults, map { "$_ is not in $set" } keys %left;
    }

    return @faults;
}


# Reads what has been answered since, and asks the store: a list of faults.

sub check
{
    my ($self, $all) = @_;

    my @faults = $self->{sets} ? $self->_check_sets($all) : ();
    my @ids;

    for my $line (map { $self->_read($_) } 1 .. $self->{clients}) {
        my ($id, $status, $url) = @$line;
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

    @ids = keys %{ $self->{url} } if $all;

    my $t = $self->{t};
    my $gone = $self->_gone;
    my %missing;

    @ids = grep { !defined $gone->{$_} } @ids;

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

        %missing = (%missing, %left);
        last if keys %missing > 20;
    }

    # meanwhile some were erased

    $gone = $self->_gone;
    push @faults, map { "id $_ is not $self->{url}{$_}" }
        grep { !defined $gone->{$_} } keys %missing;
    push @faults, $self->_check_gone($all);

    return \@faults;
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
        my $n = grep { /\thttp/ || /^(\d+)/ && defined $self->{gone}{$1} }
            split /\n/, $a->{body};

        push @faults, "of $id .. $last only $n have a URL"
            if $n != $last - $id + 1;
    }

    my @urls = grep { !defined $self->{gone}{$self->{id}{$_}} }
        keys %{ $self->{id} };
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
