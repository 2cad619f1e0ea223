package UrlStore::Load;

# Loads a corpus over several connections and keeps book of every answer.
#
#     my $load = UrlStore::Load->new($t, \@lines);
#     my $answers = $load->post('/add', connections => 4);
#
# The answers come in the order of the lines, as [ id, status, url or reason ]
# with an undefined id where there is none.  Each connection is a process of
# its own; a request that got no whole answer is sent again, which is what a
# crawler would do (adding is idempotent).

use strict;
use warnings;

use File::Temp qw(tempdir);
use Time::HiRes qw(sleep time);


sub new
{
    my ($class, $t, $lines, %o) = @_;

    return bless { t => $t, lines => $lines, batch => 1000, %o }, $class;
}


# Options: connections (4); spread, seconds over which the batches are spread
# evenly; meanwhile, code that the parent runs again and again until all is
# sent (it sleeps itself).

sub post
{
    my ($self, $path, %o) = @_;

    my $dir = tempdir(CLEANUP => 1);
    my $n = int((@{ $self->{lines} } + $self->{batch} - 1) / $self->{batch});
    my $start = time;
    my $conns = $o{connections} || 4;
    my %child;

    for my $c (0 .. $conns - 1) {
        my $pid = fork() // die "fork: $!";

        if ($pid == 0) {
            my $ok = eval {
                my $client = $self->{t}->client;

                for (my $b = $c; $b < $n; $b += $conns) {
                    my $wait = $o{spread}
                        ? $start + $o{spread} * $b / $n - time : 0;

                    sleep $wait if $wait > 0;
                    $self->_batch($client, $path, $b, "$dir/$b");
                }
                1;
            };
            warn $@ if !$ok;

            # without the END block of the test

            POSIX::_exit($ok ? 0 : 1);
        }

        $child{$pid} = 1;
    }

    my $failed = 0;

    while (%child) {
        for my $pid (keys %child) {
            if (waitpid($pid, $o{meanwhile} ? POSIX::WNOHANG() : 0) == $pid) {
                $failed++ if $? != 0;
                delete $child{$pid};
            }
        }

        $o{meanwhile}->() if %child && $o{meanwhile};
    }

    $self->{seconds} = time - $start;

    die "$failed connections failed" if $failed;

    my @answers;

    for my $b (0 .. $n - 1) {
        open my $fh, '<:raw', "$dir/$b" or die "$dir/$b: $!";

        while (my $line = <$fh>) {
            chomp $line;
            my ($id, $status, $url) = split /\t/, $line, 3;
            push @answers, [ $id eq '-' ? undef : $id, $status, $url ];
        }
    }

    return \@answers;
}


sub _batch
{
    my ($self, $client, $path, $b, $file) = @_;

    my $from = $b * $self->{batch};
    my $to = $from + $self->{batch} - 1;

    $to = $#{ $self->{lines} } if $to > $#{ $self->{lines} };

    my $body = join('', map { "$_\n" } @{ $self->{lines} }[$from .. $to]);

    for my $try (1 .. 100) {
        my $r = $client->request('POST', $path, $body,
            'Content-Type' => 'text/plain');

        if (!$r) {
            sleep 0.02;
            next;
        }

        die "batch $b: $r->{status} $r->{body}" if $r->{status} != 200;

        my $got = ($r->{body} =~ tr/\n//);

        die "batch $b: $got answers" if $got != $to - $from + 1;

        open my $fh, '>:raw', $file or die "$file: $!";
        print $fh $r->{body};
        close $fh or die "$file: $!";
        return;
    }

    die "batch $b: no answer after 100 tries";
}


# The book: what must hold of the answers of all loads together, whoever was
# killed meanwhile.  Returns { urls => \@url_by_id, faults => \@texts }.

sub book
{
    my (@loads) = @_;

    my (@url, %id, @faults);

    for my $answers (@loads) {
        for my $a (@$answers) {
            my ($id, $status, $url) = @$a;

            if (!defined $id) {
                push @faults, "$status without an id: $url"
                    if $status !~ /^(?:invalid|rejected)$/;
                next;
            }

            if (defined $url[$id] && $url[$id] ne $url) {
                push @faults, "id $id is $url[$id] and $url";
            }

            if (defined $id{$url} && $id{$url} != $id) {
                push @faults, "$url is $id{$url} and $id";
            }

            $url[$id] = $url;
            $id{$url} = $id;
        }
    }

    my @gaps = grep { !defined $url[$_] } 0 .. $#url;

    push @faults, "no URL was answered for id $gaps[0] and " . $#gaps . ' more'
        if @gaps;

    return { urls => \@url, id => \%id, faults => \@faults };
}


# What GET /url/ID,ID,... says of each URL of the book: the number that it
# says otherwise.

sub wrong_urls
{
    my ($t, $url) = @_;

    my $client = $t->client;
    my $wrong = 0;

    for (my $from = 0; $from < @$url; $from += 1000) {
        my $to = $from + 999 < $#$url ? $from + 999 : $#$url;

        my $r = $client->request('POST', '/url',
            join('', map { "$_\n" } $from .. $to),
            'Content-Type' => 'text/plain') or die 'no answer';

        my $want = join '', map { "$_\t$url->[$_]\n" } $from .. $to;

        next if $r->{body} eq $want;

        my @got = split /\n/, $r->{body};
        $wrong += grep { ($got[$_ - $from] // '') ne "$_\t$url->[$_]" }
            $from .. $to;
    }

    return $wrong;
}


1;
