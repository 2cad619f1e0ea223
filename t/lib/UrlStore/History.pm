package UrlStore::History;

# The record of what clients were answered, and the exact judgement of it.
#
#     my $h = UrlStore::History->new($file);
#     my $r = $h->writer;              in each process that asks
#     my $r->add($client, @urls);      the answer, or undef; all is recorded
#     my $s = $r->slow($client, $half);    an add whose body comes by and by;
#     $s->piece(@urls);                    half-closed in the end, or not
#     $s->end;                             the answer
#     $r->seen($client, @urls);
#     $r->url($client, $id);
#     $r->urls($client, @ids);
#     my $why = $h->check(@urls);      '', or what was wrong
#
# @urls of check() are what the store has in the end, by id from 0 on.  There is
# an order of all insertions that explains every answer, if and only if
#
#  - each id has one URL and each URL one id, as in the end; none is new twice;
#  - points of time can be given to ids 0, 1, ... which never decrease: an id's
#    is not before the first add of its URL was sent, nor before any request
#    that denied the URL or the id was sent, nor before the request that was
#    answered `new`; and not after the first answer that has it came.
#
# The earliest such points are given, so the check is exact.
#
# A line of the file: when the request was sent, when the answer came ("-": it
# did not), what was asked, the URL, the status, the id; "-" is nothing.

use strict;
use warnings;


sub new
{
    my ($class, $file) = @_;

    return bless { file => $file, count => {} }, $class;
}


sub writer
{
    my ($self) = @_;

    open my $out, '>>', $self->{file} or die "$self->{file}: $!";

    return bless { out => $out }, 'UrlStore::History::Writer';
}


# how many answers of a kind; when the answer came that check() reports, if it
# was a denial or out of order

sub count { return $_[0]{count} }
sub at { return $_[0]{at} }


sub check
{
    my ($self, @urls) = @_;

    my (%id, %url, %new, %sent, %least, %last, %denied);
    my $max = sub {
        my ($h, $k, $v) = @_;
        $h->{$k} = $v if !defined $h->{$k} || $h->{$k} < $v;
    };

    open my $in, '<', $self->{file} or return "no record: $!";

    while (<$in>) {
        my ($began, $ended, $what, $url, $status, $id) = split;

        $self->{count}{"$what $status"}++;

        $sent{$url} = $began if $what =~ /^(?:add|slow|half)$/
            && (!defined $sent{$url} || $began < $sent{$url});

        if ($status eq 'unknown') {
            $max->(\%denied, $id, $began);
            next;
        }

        $max->(\%denied, $url, $began) if $status eq 'unseen';

        next if $id eq '-';

        return "$url has the ids $id{$url} and $id"
            if ($id{$url} //= $id) != $id;
        return "the id $id has the URLs $url{$id} and $url"
            if ($url{$id} //= $url) ne $url;

        if ($status eq 'new') {
            return "$url is new twice" if $new{$url}++;
            $max->(\%least, $id, $began);
        }

        $last{$id} = $ended if !defined $last{$id} || $ended < $last{$id};
    }

    for my $url (sort { $id{$a} <=> $id{$b} } keys %id) {
        my $end = $urls[$id{$url}] // 'nothing';

        return "the id $id{$url} was $url and is $end" if $end ne $url;

        for my $k ($url, $id{$url}) {
            $self->{at} = $denied{$k};

            return sprintf '%s (id %d) is denied %.3f s after an answer that '
                . 'had it', $url, $id{$url}, $denied{$k} - $last{$id{$url}}
                if defined $denied{$k} && $denied{$k} > $last{$id{$url}};
        }
    }

    my ($point, %in) = 0;

    for my $id (0 .. $#urls) {
        my $url = $urls[$id];

        return "$url has two ids in the end" if $in{$url}++;
        return "$url is in the store, and nobody has added it"
            if !defined $sent{$url};

        for ($sent{$url}, $least{$id}, $denied{$id}, $denied{$url}) {
            $point = $_ if defined && $_ > $point;
        }

        $self->{at} = $last{$id};

        return sprintf 'the id %d was answered %.3f s before an id below it '
            . 'can have been given', $id, $point - $last{$id}
            if defined $last{$id} && $last{$id} < $point;
    }

    return '';
}


package UrlStore::History::Writer;

use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);


# by text for several URLs, by JSON for one

sub add { my $self = shift; return $self->_ask('add', @_) }
sub seen { my $self = shift; return $self->_ask('seen', @_) }


sub _ask
{
    my ($self, $what, $client, @urls) = @_;

    my @request = @urls > 1
        ? ('POST', "/$what", join('', map { "$_\n" } @urls),
           'Content-Type' => 'text/plain')
        : $what eq 'add'
        ? ('POST', '/add', "url=$urls[0]",
           'Content-Type' => 'application/x-www-form-urlencoded')
        : ('GET', "/seen?url=$urls[0]");

    return $self->_answered($what, \@urls, _timed($client, @request));
}


# a connection of its own; undef if there is none

sub slow
{
    my ($self, $client, $half) = @_;

    my $began = clock_gettime(CLOCK_MONOTONIC);

    return $client->begin('POST', '/add', 'Content-Type' => 'text/plain',
        Accept => 'text/plain') ? bless { record => $self, urls => [],
        client => $client, half => $half, began => $began },
        'UrlStore::History::Slow' : undef;
}


sub _answered
{
    my ($self, $what, $urls, $began, $r, $ended) = @_;

    my @urls = @$urls;
    my @got;

    if (!$r || $r->{status} >= 400) {
        @got = map { [$r ? $r->{status} : '-', '-'] } @urls;

    } elsif (@urls > 1 || $what !~ /^(?:add|seen)$/) {
        @got = map { my ($id, $status) = split /\t/; [$status, $id] }
            split /\n/, $r->{body};

    } else {
        my $json = $r->json;
        @got = [$json->{status}, $json->{id} // '-'];
    }

    $self->_write(map { [$began, $ended, $what, $urls[$_],
        @{ $got[$_] // ['-', '-'] }] } 0 .. $#urls);

    return $r;
}


sub url
{
    my ($self, $client, $id) = @_;

    my ($began, $r, $ended) = _timed($client, 'GET', "/url/$id");
    my $status = $r ? $r->{status} : '-';

    $self->_write([$began, $ended, 'url', $status == 200
        ? ($r->{body} =~ s/\n//r, 'found', $id)
        : $status == 404 ? ('-', 'unknown', $id) : ('-', $status, '-')])
        if $status ne '-';

    return $r;
}


sub urls
{
    my ($self, $client, @ids) = @_;

    my ($began, $r, $ended) = _timed($client, 'POST', '/url',
        join('', map { "$_\n" } @ids), Accept => 'text/plain');

    if ($r && $r->{status} == 200) {
        $self->_write(map { my ($id, $url, $status) = split /\t/;
            $url ne '-' ? [$began, $ended, 'urls', $url, 'found', $id]
            : [$began, $ended, 'urls', '-', $status,
               $status eq 'unknown' ? $id : '-'] } split /\n/, $r->{body});
    }

    return $r;
}


sub _timed
{
    my ($client, @request) = @_;

    my $began = clock_gettime(CLOCK_MONOTONIC);
    my $r = $client->request(@request);

    return ($began, $r, $r ? clock_gettime(CLOCK_MONOTONIC) : '-');
}


sub _write
{
    my ($self, @lines) = @_;

    syswrite $self->{out}, join '', map { my ($began, $ended, @rest) = @$_;
        sprintf("%.6f ", $began) . ($ended eq '-' ? '-'
            : sprintf '%.6f', $ended) . " @rest\n" } @lines;
}


package UrlStore::History::Slow;


sub piece
{
    my ($self, @urls) = @_;

    push @{ $self->{urls} }, @urls;
    $self->{client}->piece(join '', map { "$_\n" } @urls);
}


sub end
{
    my ($self) = @_;

    my $r = $self->{client}->end($self->{half});

    $self->{client}->disconnect;

    return $self->{record}->_answered($self->{half} ? 'half' : 'slow',
        $self->{urls}, $self->{began}, $r, $r ? Time::HiRes::clock_gettime(
        Time::HiRes::CLOCK_MONOTONIC()) : '-');
}


1;
