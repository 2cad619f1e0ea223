package UrlStore::Splitter;

# A client of a cluster without a router: it splits its batches by the map.
#
#     my $split = UrlStore::Splitter->new(@ports);    of shards 0, 1, ...
#
#     $split->refresh;                     the map, of any shard
#     $split->ask($add, @urls);            [status, id] for each
#     $split->naive($add, @urls);
#
#     $split->router($port);
#     $split->route($add, @urls);          through a router
#     $split->erase(@urls);                the same
#
# ask() names its map in each request (Urlstore-Map).  A URL of a slot with
# former owners is asked at the owner and at all of these.  Only if all of them
# deny it, it is added at the owner.  naive() asks the owner alone and names no
# map.  The status is `unavailable`, with the id "-", if a shard did not answer,
# or not under this map: then the URL may be sent again, with a newer map.

use strict;
use warnings;

use Compress::Zlib ();
use JSON::PP ();

use UrlStore::Client;


sub new
{
    my ($class, @ports) = @_;

    return bless { shards => [map { _client($_) } @ports] }, $class;
}


# A request is sent once: if it was applied, and its reply was lost, it says so.

sub _client
{
    my ($port) = @_;

    return UrlStore::Client->new('127.0.0.1', $port, timeout => 20,
        no_retry => 1);
}


sub refresh
{
    my ($self) = @_;

    my $r = $self->{shards}[rand @{ $self->{shards} }]
        ->request('GET', '/cluster') or return;

    return if $r->{status} != 200;

    my ($version, $digest) = $r->{headers}{etag} =~ /^"(\d+)-(\w+)"$/ or return;

    return if $self->{map} && $self->{map}{version} >= $version;

    my $map = JSON::PP::decode_json($r->{body});
    my @slots;

    for my $range (@{ $map->{slots} }) {
        my ($at, @owners) = @$range;
        my ($from, $to) = split /-/, $at;

        $slots[$_] = \@owners for $from .. $to // $from;
    }

    $self->{map} = { version => $version, digest => $digest,
        cluster => $map->{cluster}, key => $map->{key}, slots => \@slots };

    return 1;
}


# the owner and the former owners of a URL

sub owners
{
    my ($self, $url) = @_;

    my $key = $url =~ s{^https?://([^/?#]*\@)?(www\.)?}{}r;

    $key =~ s{[/?#].*}{} if $self->{map}{key} eq 'site';

    return @{ $self->{map}{slots}[Compress::Zlib::crc32($key) >> 20] };
}


sub ask
{
    my ($self, $add, @urls) = @_;

    my (@answers, %seen, %add);

    return map { ['unavailable', '-'] } @urls if !$self->{map};

    # who is asked first: by shard, the indexes of URLs

    for my $i (0 .. $#urls) {
        my ($owner, @former) = $self->owners($urls[$i]);

        if ($add && !@former) {
            push @{ $add{$owner} }, $i;
            next;
        }

        push @{ $seen{$_} }, $i for $owner, @former;
    }

    for my $n (keys %seen) {
        my @got = $self->_named($n, 'seen', @urls[@{ $seen{$n} }]);

        for my $k (0 .. $#got) {
            my $i = $seen{$n}[$k];
            my $had = $answers[$i];

            # what one of them has is there; who did not answer denies nothing

            $answers[$i] = $got[$k] if !$had || $got[$k][0] eq 'seen'
                || ($got[$k][0] ne 'unseen' && $had->[0] eq 'unseen');
        }
    }

    if ($add) {
        for my $i (grep { $answers[$_] && $answers[$_][0] eq 'unseen' }
            0 .. $#urls)
        {
            push @{ $add{ ($self->owners($urls[$i]))[0] } }, $i;
        }

        for my $n (keys %add) {
            my @got = $self->_named($n, 'add', @urls[@{ $add{$n} }]);

            $answers[$add{$n}[$_]] = $got[$_] for 0 .. $#got;
        }
    }

    return @answers;
}


sub naive
{
    my ($self, $add, @urls) = @_;

    my (@answers, %by);

    return map { ['unavailable', '-'] } @urls if !$self->{map};

    push @{ $by{ ($self->owners($urls[$_]))[0] } }, $_ for 0 .. $#urls;

    for my $n (keys %by) {
        my @got = _post($self->{shards}[$n], $add ? 'add' : 'seen',
            [@urls[@{ $by{$n} }]]);

        $answers[$by{$n}[$_]] = $got[$_] for 0 .. $#got;
    }

    return @answers;
}


sub router
{
    my ($self, $port) = @_;

    $self->{router} = _client($port);
}


sub route
{
    my ($self, $add, @urls) = @_;

    return _post($self->{router}, $add ? 'add' : 'seen', \@urls);
}


sub erase
{
    my ($self, @urls) = @_;

    return _post($self->{router}, 'erase', \@urls);
}


# the same of a shard, by the map that this client has

sub _named
{
    my ($self, $n, $what, @urls) = @_;

    my $map = $self->{map};

    return _post($self->{shards}[$n], $what, \@urls, 'Urlstore-Map' =>
        "$map->{cluster} $n $map->{version} $map->{digest}");
}


# what is answered: [status, id] for each

sub _post
{
    my ($client, $what, $urls, @headers) = @_;

    my $r = $client->request('POST', "/$what",
        join('', map { "$_\n" } @$urls), 'Content-Type' => 'text/plain',
        @headers);

    return map { ['unavailable', '-'] } @$urls
        if !$r || $r->{status} !~ /^20[02]$/;

    return map { my ($id, $status) = split /\t/; [$status, $id] }
        grep { !/^#/ } split /\n/, $r->{body};
}


1;
