#!/usr/bin/perl

# PostgreSQL set up as docs/replicated-log.md has it: its commands make the
# roles and the tables, its lines of pg_hba.conf let a node and a standby in and
# nobody else, and the loop that deletes a shard's rows leaves none.

use strict;
use warnings;

use lib 't/lib';

use UrlStore::Nodes;
use UrlStore::Postgres;
use UrlStore::Test;

plan(skip_all => 'no PostgreSQL here') if !UrlStore::Postgres::bin();

my $doc = slurp('docs/replicated-log.md');
my ($section) = $doc =~ /^## Set PostgreSQL up\n(.*?)^## /ms;
my @commands = $section =~ /^       ((?:createuser|psql) .*)$/mg;
my @hba = $section =~ /^       (host .*)$/mg;
my ($copy) = $section =~ /`(pg_basebackup .*?)`/s;
my ($loop) = $doc =~ /^    (for t in log .* done)$/m;

is(scalar @commands, 3, 'three commands make roles and tables');
is(scalar @hba, 2, 'two lines are for pg_hba.conf');

# a new server has neither, but for its administrator

my $pg = UrlStore::Postgres->new->start;

$pg->sql('DROP DATABASE urlstore', 'postgres');
$pg->sql('DROP ROLE urlstore', 'postgres');


# as the administrator, who types a new password twice

sub typed
{
    my ($command, $password) = @_;

    my $bin = UrlStore::Postgres::bin();

    return UrlStore::Postgres::_run('setsid', 'sh', '-c', "PATH=$bin:\$PATH; "
        . "export PATH PGHOST=$pg->{dir} PGPORT=$pg->{port} PGUSER=postgres; "
        . "printf '%s\\n' \"\$0\" \"\$0\" | { $command; }", $password);
}

my $schema = "$pg->{dir}/schema.sql";

spew($schema, slurp('conf/urlstore-schema.sql'));

for (@commands) {
    s{/usr/share/urlstore/urlstore-schema.sql}{$schema};
    typed($_, /replication/ ? 'of a standby' : $UrlStore::Postgres::PASSWORD);
}

is($pg->sql('SELECT string_agg(tablename, \' \' ORDER BY tablename) FROM '
    . "pg_tables WHERE tablename LIKE 'urlstore%'"),
    'urlstore_base urlstore_log urlstore_shard', 'the tables are there');
is($pg->sql("SELECT pg_has_role('urlstore', 'pg_read_all_stats', 'member')"),
    't', 'the nodes may see what standbys have');
is($pg->sql('SELECT rolsuper OR rolcreatedb OR rolreplication FROM pg_roles '
    . "WHERE rolname = 'urlstore'"), 'f', '  and no more than that');

# only these lines, and the administrator by the socket

s{10\.0\.\d\.0/\d+}{127.0.0.1/32} for @hba;
spew("$pg->{data}/pg_hba.conf", join "\n", 'local all postgres trust', @hba,
    '');
$pg->sql('SELECT pg_reload_conf()');

# step 2; then step 3

my $b = UrlStore::Postgres->new(name => 'b');

File::Path::remove_tree($b->{data});
$copy =~ s/DATA/$b->{data}/;
$copy =~ s/host=10\.0\.1\.1 /host=127.0.0.1 port=$pg->{port} /;
$copy =~ s/password=\.\.\./password='"'of a standby'"'/;
$copy =~ s/'"'"'|'"'/\\'/g;
$copy =~ s/-d '(.*)'$/-d "$1"/;
$copy =~ s/\\'/'/g;
typed("$copy -c fast", '');
$b->start;
$pg->set(synchronous_standby_names => 'a, b');
ok(wait_until(20, sub {
    $pg->sql('SELECT sync_state FROM pg_stat_replication') eq 'sync' }),
    'the standby is synchronous');

# a pair of nodes that log in by the line for them

my $n = UrlStore::Nodes->new(($pg->conninfo(hosts => [$pg, $b])) x 2);

$n->conf('takeover=2s lease=1s');
is($n->begin(sub { }), '', 'two nodes and a router');

my $urls = join '', map { "https://www.gov.uk/$_\n" }
    qw(browse/abroad browse/benefits vat-rates);
my ($a) = $n->nodes;
my $r = $n->router->post('/add', $urls, 'Content-Type' => 'text/plain');

is(() = $r->{body} =~ /^\d+\tnew\t/mg, 3, 'URLs are added, with a standby');
like(eval { UrlStore::Postgres::_run(UrlStore::Postgres::bin() . '/psql', '-d',
    "host=127.0.0.1 port=$pg->{port} user=postgres dbname=urlstore", '-c',
    'SELECT 1'); 'in' } // $@, qr/no pg_hba.conf entry/,
    'nobody else comes in');

# the rows of a shard that was begun too early

$n->unload;
$_->stop for $n->nodes;
isnt($pg->sql('SELECT count(*) FROM urlstore_log'), 0, 'the log has rows');
typed($loop, '');
is($pg->sql("SELECT count(*) FROM urlstore_$_ WHERE shard = 0"), 0,
    "none in urlstore_$_") for qw(log base shard);
