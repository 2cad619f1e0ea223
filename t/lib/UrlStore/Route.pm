package UrlStore::Route;

# US_ROUTE=N: the zones of a test become clusters, its locations routers.
#
#     US_ROUTE=1    over one shard, which has the ids of a zone
#     US_ROUTE=3    the same, and two former owners of each slot: all three
#                   are asked about each URL, and shard 0 adds it
#
# So ids and answers are those of a node, but for what docs/cluster.md names:
# next_ids and epochs in place of next_id and epoch, and what belongs to a
# router.  Tests ask routed() where they assert one or the other.
#
# Each urlstore_zone NAME of the text is replaced:
#
#     urlstore_zone NAME_0 SIZE ... path=DIR/0 cluster=NAME shard=0 ...
#     upstream NAME_0, and a server of its own for it
#     urlstore_cluster NAME, urlstore_route NAME in place of urlstore_api NAME,
#     urlstore_route NAME endpoint=add of urlstore_add NAME, and so on
#
# A zone without path= has its shards below the prefix, and they are removed at
# each start: it keeps nothing.
#
# Core Perl only.

use strict;
use warnings;

use File::Path qw(make_path remove_tree);
use JSON::PP ();
use Time::HiRes ();


my $json = JSON::PP->new->canonical;
my $zone = qr/^\s*urlstore_zone\s+(\w+)\s+(\w+)([^;]*);/m;


# the text over N shards; $t->{routed} has what start() and adopt() need

sub conf
{
    my ($t, $n, $text) = @_;

    my %zones;

    while ($text =~ /$zone/g) {
        my ($name, $size, $params) = ($1, $2, $3);
        my $path = $params =~ s/\bpath=(\S+)// ? $t->expand($1) : '';

        $zones{$name} = { name => $name, n => $n, kept => $path ne '',
            size => $size, params => $params . ($path eq '' ? ' sync=off' : ''),
            path => $path || "$t->{dir}/route-$name" };
    }

    $t->{routed} = \%zones;

    $text =~ s/$zone/_cluster($t, $zones{$1})/ge;

    for my $name (keys %zones) {
        $text =~ s/\burlstore_api\s+$name\s*;/urlstore_route $name;/g;
        $text =~ s/\burlstore_(?!zone|cluster|route|quota|max|rewrite|reject
            |accept|strip|www|allow)(\w+)\s+$name\s*;
            /urlstore_route $name endpoint=$1;/gx;
    }

    return $text;
}


sub _cluster
{
    my ($t, $z) = @_;

    my $name = $z->{name};

    return "urlstore_cluster $name $t->{dir}/$name.json;\n"
        . join '', map {
            my $port = $t->port("$name$_");
            <<CONF;
urlstore_zone ${name}_$_ $z->{size} $z->{params} path=$z->{path}/$_
              cluster=$name shard=$_ node=${name}_$_;
upstream ${name}_$_ { server 127.0.0.1:$port; keepalive 8; }
server {
    listen 127.0.0.1:$port;
    client_max_body_size 64m;
    location / { urlstore_api ${name}_$_; urlstore_max_body 64m; }
    location = /admin { urlstore_cluster_admin $name; }
}
CONF
        } 0 .. $z->{n} - 1;
}


# before nginx starts: what is in memory only is gone

sub start
{
    my ($t) = @_;

    for my $z (values %{ $t->{routed} }) {
        next if $z->{kept} && -e "$z->{path}/0";

        remove_tree($z->{path}) if !$z->{kept};
        unlink "$t->{dir}/$z->{name}.json";
        make_path($z->{path});

        if ($> == 0) {
            my ($uid, $gid) = (getpwnam((split ' ', $t->{user})[0]))[2, 3];
            chown $uid, $gid, $z->{path};
        }
    }

    $t->allow(qr/\.json" is missing/);
}


# after it: the maps, of the shards' uuids; true if all have them

sub adopt
{
    my ($t) = @_;

    my $new = grep { !-e "$t->{dir}/$_.json" } keys %{ $t->{routed} };

    return 0 if grep { !_adopted($t, $_) } values %{ $t->{routed} };

    # each worker looks at the files of the maps once a second

    Time::HiRes::sleep(1.2) if $new;

    return 1;
}


sub _adopted
{
    my ($t, $z) = @_;

    my @shards = map { UrlStore::Client->new('127.0.0.1',
        $t->port("$z->{name}$_")) } 0 .. $z->{n} - 1;

    for my $c (@shards) {
        UrlStore::Test::wait_until(20, sub {
            my $r = $c->request('GET', '/health');
            return $r && $r->{status} == 200;
        }) == 1 or return 0;
    }

    if (!-e "$t->{dir}/$z->{name}.json") {
        my @stats = map { $_->request('GET', '/stats')->json } @shards;

        my $map = $json->encode({ cluster => 'c' x 32, version => 1,
            key => 'site', norm => $stats[0]{normalization},
            shards => { map { $_ => { uuid => $stats[$_]{uuid},
                nodes => ["$z->{name}_$_"] } } 0 .. $#stats },
            slots => [['0-4095', 0, reverse 1 .. $#stats]] });

        UrlStore::Test::wait_until(20, sub {
            $shards[0]->request('POST', '/admin', $map,
                'Content-Type' => 'application/json')->{status} == 204;
        }) == 1 or return 0;
    }

    return 1;
}


1;
