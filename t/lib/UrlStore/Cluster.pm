package UrlStore::Cluster;

# A router over shards of this module, all in one nginx: port 0 is that of the
# router, ports 1 .. those of the shards.
#
#     my $c = UrlStore::Cluster->new(shards => 3, key => 'site',
#         zone => 'marks=a revisit=1m');
#     $c->run;                             # $c->t is a UrlStore::Test
#     $c->t->post('/add', ...);
#     $c->shard(2)->request('GET', '/stats');
#     $c->map(2, ['0-4095', 1, 0]);        # the next version: its slots
#     $c->down(2);                         # the router does not reach it
#
# The first map has the option slots, or equal parts.  Other options: route
# (parameters of urlstore_route), location (directives beside it), server and
# http (others).
#
# Core Perl only.

use strict;
use warnings;

use JSON::PP ();

use UrlStore::Test ();


my $json = JSON::PP->new->canonical;


sub new
{
    my ($class, %o) = @_;

    my $self = bless { shards => 3, key => 'url', zone => '', route => '',
        location => '', server => '', http => '', %o }, $class;

    $self->{t} = UrlStore::Test->new;

    return $self;
}


sub t { return $_[0]{t} }
sub shard { return $_[0]{t}->client($_[1] + 1) }


sub conf
{
    my ($self, %down) = @_;

    my $n = $self->{shards};

    return <<CONF . join '', map { <<CONF } 0 .. $n - 1;
urlstore_cluster crawl %%DIR%%/map.json;
client_max_body_size 8m;
$self->{http}
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_route crawl $self->{route}; $self->{location} }
$self->{server}
}
CONF
urlstore_zone u$_ 16m path=%%DIR%%/$_ cluster=crawl shard=$_ node=us_$_
              $self->{zone};
upstream us_$_ {
    server 127.0.0.1:%%PORT@{[$down{$_} ? 9 : $_ + 1]}%%;
    keepalive 8;
}
server {
    listen 127.0.0.1:%%PORT@{[$_ + 1]}%%;
    location / { urlstore_api u$_; }
}
CONF
}


sub run
{
    my ($self) = @_;

    $self->{t}->run($self->conf);
    $self->{uuid} = [map { $self->_uuid($_) } 0 .. $self->{shards} - 1];

    $self->map(1, $self->slots) or die 'the shards have no map';

    return $self;
}


# the router reaches all shards but these, from a reload on

sub down
{
    my ($self, @shards) = @_;

    return $self->{t}->reload($self->conf(map { $_ => 1 } @shards));
}


sub _uuid
{
    my ($self, $n) = @_;

    UrlStore::Test::wait_until(20, sub {
        my $r = $self->shard($n)->request('GET', '/health');
        return $r && $r->{status} == 200;
    });

    return $self->shard($n)->request('GET', '/stats')->json->{uuid};
}


# equal parts

sub slots
{
    my ($self) = @_;

    my $n = $self->{shards};

    return @{ $self->{slots} } if $self->{slots};
    return map { [int(4096 * $_ / $n) . '-' . (int(4096 * ($_ + 1) / $n) - 1),
        $_] } 0 .. $n - 1;
}


# a new map, and waits until the router and the shards have it

sub map
{
    my ($self, $version, @slots) = @_;

    my $t = $self->{t};

    UrlStore::Test::spew($t->dir . '/map.new', $json->encode({
        cluster => 'c' x 32, version => $version, key => $self->{key},
        norm => 'crawler/1 unicode=15.0 www=first',
        shards => { map { $_ => { uuid => $self->{uuid}[$_],
            nodes => ["us_$_"] } } 0 .. $self->{shards} - 1 },
        slots => \@slots }));
    rename $t->dir . '/map.new', $t->dir . '/map.json';

    return UrlStore::Test::wait_until(20, sub {
        for my $n (0 .. $self->{shards}) {
            my $r = $t->client($n)->request('GET', '/cluster');

            return 0 if !$r || $r->{status} != 200
                || $r->json->{version} != $version;
        }

        # the worker that answers over the test's connection has it, too

        my $r = $t->get('/cluster');

        return $r->{status} == 200 && $r->json->{version} == $version;
    });
}


1;
