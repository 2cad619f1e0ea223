package UrlStore::Nodes;

# Two nodes with replicate= for shard 0, a router over them, and clients that
# record all answers (UrlStore::History).
#
#     my $n = UrlStore::Nodes->new($conninfo, $conninfo);   of node 0, 1
#     $n->conf('lease=1s takeover=2s');      parameters of the zone; of node 0
#                                            alone, of node 1 alone
#     $n->{http} = 'keepalive_timeout 1s;';  more of nginx's http {}, before
#     my $why = $n->begin(sub { ... });      all starts anew; '', or what is
#                                            wrong.  The code empties the log
#     $n->load(4, $seed, "slow");            clients, and one that only looks
#                                            up; slow ones, if wanted
#     $n->accepted(@nodes);                  the seconds to an add by one of
#                                            these nodes
#     $n->unload;
#     $why = $n->judge($primary);            '', or what was wrong
#
# A node is a UrlStore::Test: $n->nodes, $n->other($node), $n->router.

use strict;
use warnings;

use JSON::PP ();
use POSIX qw(_exit);
use Time::HiRes qw(sleep time);

use UrlStore::Client;
use UrlStore::History;
use UrlStore::Test ();

my $RATE = 300;                      # URLs that are found in a second
my $SLOW = 8;                        # slow clients


sub new
{
    my ($class, @conninfo) = @_;

    Test::More::BAIL_OUT("no $UrlStore::Test::POSTGRES: run make")
        if !-e $UrlStore::Test::POSTGRES;

    my @nodes = map { UrlStore::Test->new(workers => 2, log => 'notice',
        globals => "load_module $UrlStore::Test::POSTGRES;") } @conninfo;
    my $router = UrlStore::Test->new;

    for my $k (0 .. $#nodes) {
        $nodes[$k]->allow_kills;
        $nodes[$k]->allow(qr/the log does not confirm/,
            qr/the master process is gone/);
        UrlStore::Test::spew("$nodes[$k]{dir}/conninfo", "$conninfo[$k]\n");
    }

    my $self = bless { nodes => \@nodes, router => $router, pids => [],
        probe => 0, sum => {} }, $class;

    $self->{record} = "$nodes[0]{dir}/record";

    $router->conf("urlstore_cluster c %%DIR%%/map.json;\n" . join('',
        map { "upstream n$_ { server 127.0.0.1:" . $nodes[$_]->port
            . "; keepalive 8; }\n" } 0 .. $#nodes) . <<'CONF');
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_route c; }
}
CONF

    return $self;
}


sub nodes { @{ $_[0]{nodes} } }
sub router { $_[0]{router} }
sub sum { $_[0]{sum} }               # how many answers of each kind


sub other
{
    my ($self, $t) = @_;

    return $self->{nodes}[$t == $self->{nodes}[0]];
}


sub conf
{
    my ($self, $zone, @of) = @_;

    for my $k (0 .. 1) {
        my $options = "$zone " . ($of[$k] // '');

        # to connect to the log takes an emulator most of a second
        $options =~ s/\b((?:lease|takeover|stale)=)(\d+)s/
            $1 . $2 * UrlStore::Test::longer() . 's'/gex;

        $self->{nodes}[$k]->conf(<<"CONF");
@{[ $self->{http} // '' ]}
urlstore_cluster c %%DIR%%/map.json;
urlstore_zone u 16m cluster=c shard=0 node=n$k $options
    replicate=postgres:\@%%DIR%%/conninfo;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location = /cluster { urlstore_cluster_admin c; }
}
CONF
    }
}


sub begin
{
    my ($self, $empty) = @_;

    my @all = ($self->nodes, $self->router);

    $_->kill_all for @all;
    unlink $self->{record}, map { "$_->{dir}/map.json" } @all;
    $empty->();
    $_->start for @all;

    $self->{client} = [map { UrlStore::Client->new('127.0.0.1', $_->port,
        timeout => 1, no_retry => 1) } $self->nodes];
    $self->{history} = UrlStore::History->new($self->{record});
    $self->{start} = time;

    map_of(@all) or return 'no node becomes the primary';

    return $self->accepted($self->nodes) ? '' : 'nothing is added';
}


# the first map of a shard with the nodes n0 and n1, in the file of each

sub map_of
{
    my (@all) = @_;

    my $s;

    UrlStore::Test::wait_until(30, sub {
        for my $t (@all) {
            my $r = $t->client->request('GET', '/health') or next;

            next if $r->{status} != 200
                || ($r->json // {})->{status} ne 'ready';
            $s = $t->client->request('GET', '/stats')->json;
            return 1 if $s && $s->{uuid};
        }

        return 0;
    }) or return 0;

    my $text = JSON::PP->new->canonical->encode({ version => 1,
        cluster => '00112233445566778899aabbccddeeff', key => 'site',
        norm => $s->{normalization}, slots => [['0-4095', 0]],
        shards => { 0 => { uuid => $s->{uuid} =~ tr/-//dr,
            nodes => ['n0', 'n1'] } } });

    for my $t (@all) {
        UrlStore::Test::spew("$t->{dir}/map.new", $text);
        rename "$t->{dir}/map.new", "$t->{dir}/map.json";
    }

    return 1;
}


sub accepted
{
    my ($self, @of) = @_;

    my $start = time;
    my $record = $self->{history}->writer;

    return UrlStore::Test::wait_until(15, sub {
        for my $k (0 .. 1) {
            next if !grep { $_ == $self->{nodes}[$k] } @of;

            my $r = $record->add($self->{client}[$k],
                'http://probe.test/' . $self->{probe}++);

            return time - $start if $r && ($r->json // {})->{id};
        }
    });
}


# a worker that leaves waits for the bodies of slow clients: only on request

sub load
{
    my ($self, $clients, $seed, $slow) = @_;

    for my $n (0 .. $clients + !!$slow) {
        my $pid = fork() // die "fork: $!";

        if (!$pid) {
            srand $seed * 100 + $n;
            $n > $clients ? $self->_slow : $self->_client($n);
            _exit(0);
        }

        push @{ $self->{pids} }, $pid;
    }
}


sub unload
{
    my ($self) = @_;

    kill 'TERM', @{ $self->{pids} };
    waitpid $_, 0 for splice @{ $self->{pids} };
}


sub url
{
    my ($n) = @_;

    return 'http://h' . $n % 300 . ".test/$n";
}


# A client, until it is ended.  All find the same URLs at about the same time,
# at the node that answered last, and sometimes at any.

sub _client
{
    my ($self, $n) = @_;

    my ($end, $at, $id, $parent) = (0, rand 3, 0, getppid);
    local $SIG{TERM} = sub { $end = 1 };
    my $record = $self->{history}->writer;
    my @to = map { UrlStore::Client->new('127.0.0.1', $_->port,
        timeout => $n % 2 ? 2 : 15, no_retry => 1) } $self->nodes,
        $self->router;

    while (!$end && getppid == $parent) {
        my $found = 1 + int((time - $self->{start}) * $RATE);
        my %batch = map { url(1 + int(rand() < .7 && $found > 100
            ? $found - rand 100 : rand $found)) => 1 }
            1 .. (rand() < .3 ? 1 : 1 + rand 20);

        $at = rand 3 if rand() < .2;

        my $what = $n == 0 ? 1 + int rand 3 : (0, 0, 1, 2, 3)[rand 5];
        my @ids = map { int rand $id + 20 } 1 .. 1 + rand 20;
        my $r = $what == 0 ? $record->add($to[$at], keys %batch)
            : $what == 1 ? $record->seen($to[$at], keys %batch)
            : $what == 2 ? $record->url($to[$at], $ids[0])
            : $record->urls($to[$at], @ids);

        if (!$r || $r->{status} >= 500) {
            $at = rand 3;
            sleep 0.01;

        } elsif ($what < 2 && $r->{body} =~ /^(\d+)\t/) {
            $id = $1 if $1 > $id;
        }

        sleep 0.004;
    }
}


# Clients whose bodies take seconds, until they are ended: a piece now and then,
# some half-closed in the end.  The node may not be the primary any more.

sub _slow
{
    my ($self) = @_;

    my ($end, $parent, $next) = (0, getppid, 0);
    local $SIG{TERM} = sub { $end = 1 };
    my $record = $self->{history}->writer;
    my @slots = map { { next => time + rand 2 } } 1 .. $SLOW;

    while (!$end && getppid == $parent) {
        for my $s (grep { $_->{next} < time } @slots) {

            if (!$s->{add}) {
                my $port = ($self->nodes, $self->nodes, $self->router)[rand 5]
                    ->port;

                $s->{add} = $record->slow(UrlStore::Client->new('127.0.0.1',
                    $port, timeout => 3), rand() < .3);
                $s->{pieces} = 2 + int rand 6;
            }

            if ($s->{add} && $s->{pieces}-- == 0) {
                (delete $s->{add})->end;

            } elsif ($s->{add}) {
                $s->{add}->piece(map { $next++; "http://slow.test/a-long-path-"
                    . "that-records-share/item-$next.html" } 0 .. rand 4);
            }

            $s->{next} = time + rand 1.5;
        }

        sleep 0.02;
    }

    $_->{add} && $_->{add}->end for @slots;
}


# the record against what there is; both nodes have the same, also after they
# have read the log anew

sub judge
{
    my ($self, $primary) = @_;

    $self->accepted($self->nodes) or return 'in the end, nothing is added';

    my @urls = _content($primary) or return 'the primary has no URLs';
    my $history = $self->{history};
    my $why = $history->check(@urls);
    my $count = $history->count;

    $self->{sum}{$_} += $count->{$_} for keys %$count;
    $self->{sum}{URLs} += @urls;

    return $why if $why;

    _same($self->other($primary), @urls) or return 'the standby has others';

    for my $t ($self->nodes) {
        $t->kill_all;
        $t->start;
    }

    for my $t ($self->nodes) {
        _same($t, @urls)
            or return 'after a start from the log, a node has others';
    }

    return '';
}


# when the answer came that judge() reports, if that is known

sub at { return $_[0]{history}->at // 0 }


# whether a node comes to have these; a standby answers only for what it has

sub _same
{
    my ($t, @urls) = @_;

    return UrlStore::Test::wait_until(20, sub {
        my @got = _content($t, scalar @urls);
        return "@got" eq "@urls";
    });
}


# the URLs of a node, by id: all, or so many

sub _content
{
    my ($t, $n) = @_;

    my $client = $t->client;
    my @urls;

    while (!defined $n || @urls < $n) {
        my $from = @urls;
        my $to = defined $n && $n < $from + 5000 ? $n - 1 : $from + 4999;
        my $r = $client->request('POST', '/url', join('', map { "$_\n" }
            $from .. $to), Accept => 'text/plain') // return;

        return if $r->{status} != 200;

        for (split /\n/, $r->{body}) {
            my ($id, $url) = split /\t/;
            return @urls if $url eq '-';
            push @urls, $url;
        }
    }

    return @urls;
}


1;
