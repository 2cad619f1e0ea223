package UrlStore::Postgres;

# Private PostgreSQL servers, for one test file.
#
#     my $a = UrlStore::Postgres->new->start;         # has the log's tables
#     my $b = $a->standby('b')->start;                # streams from it
#     $a->set(synchronous_standby_names => 'b');      # and reads it
#
#     $a->conninfo                 of the role urlstore, by TCP
#     $a->conninfo(port => 1, hosts => [ $a, $b ])    a proxy; several
#     $a->sql('SELECT 1')          as superuser: the rows, columns by "|"
#     $a->dump                     the data of the tables
#     my $held = $a->hold($sql)    a transaction, undone by $held->end
#     $a->stop('immediate')        or fast, or kill (SIGKILL to all of it)
#     $a->pause, $a->resume        SIGSTOP to all its processes
#     $b->promote
#     $a->follow($b)               of a stopped server: pg_rewind, start
#     $a->receive('w')             starts pg_receivewal of this name: its pid
#     $a->archive->start           keeps its WAL
#     $a->backup; $a->stop;        a base backup, from which it begins again,
#     $a->restore(%o)->start       and the WAL: up to recovery_target_...
#
# A server is a child of the test, and ends with it, however it ends.  Its
# folder is a temporary one; fsync is off unless new(fsync => 'on').  Debian's
# binaries are taken from the system or from build/debian.  A server does not
# run as root: then it is nobody's.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(sleep time);

use UrlStore::Test ();

my $TOP = abs_path(dirname(__FILE__) . '/../../..');
my $MAIN = $$;
my $ROOT;                        # the folder of all servers of this file
my $BIN;
my $MODEL;                       # data of a server with the tables, stopped
my @SERVERS;

our $PASSWORD = 'of urlstore\'s own';


# the folder of the binaries; undef: there are none

sub bin
{
    return $BIN if $BIN;

    ($BIN) = grep { -x "$_/postgres" } glob("$TOP/build/debian/usr/lib/"
        . 'postgresql/*/bin /usr/lib/postgresql/*/bin');

    # build/ may be in a folder that nobody else can read

    if ($BIN && system(_as(), 'test', '-x', "$BIN/postgres") != 0) {
        my ($usr, $rest) = $BIN =~ m{^(.*)(/lib/postgresql/.*)};

        $BIN = _root() . "/usr$rest";

        for (qw(lib share)) {
            make_path(_root() . "/usr/$_");
            system('cp', '-r', "$usr/$_/postgresql", _root() . "/usr/$_") == 0
                or die "cp: $?";
        }
    }

    return $BIN;
}


# options: name (a), and settings of postgresql.conf

sub new
{
    my ($class, %o) = @_;

    _model() if !$MODEL && !$o{_model};

    my $self = bless { name => delete $o{name} // 'a', set => {} }, $class;
    my $model = delete $o{_model};

    push @SERVERS, $self;
    $self->{dir} = _root() . '/' . @SERVERS . $self->{name};
    $self->{data} = "$self->{dir}/data";
    $self->{port} = UrlStore::Test::free_port();

    mkdir $self->{dir} or die "$self->{dir}: $!";
    _own($self->{dir});
    _run('cp', '-a', $MODEL, $self->{data}) if !$model;
    $self->{set} = { %o };

    return $self;
}


# a standby of a running server

sub standby
{
    my ($self, $name, %o) = @_;

    my $new = UrlStore::Postgres->new(name => $name, %o);

    remove_tree($new->{data});
    _run(bin() . '/pg_basebackup', '-D', $new->{data}, '-c', 'fast', '-X',
        'stream', '--no-sync', '-d', $self->_admin);
    $new->{set} = { %{ $self->{set} }, %o };
    $new->_follows($self);

    return $new;
}


# a stopped server becomes a standby of another one

sub follow
{
    my ($self, $other) = @_;

    # the command of docs/replicated-log.md; its settings go, as those of
    # _configure() are changed later

    my ($command) = UrlStore::Test::slurp("$TOP/docs/replicated-log.md")
        =~ /`(pg_rewind -R .*?)`/s or die 'no pg_rewind';
    my $auto = "$self->{data}/postgresql.auto.conf";
    my $server = $other->_admin;

    $command =~ s/DATA/$self->{data}/;
    $command =~ s/'host=.*? (application_name)=a'/'$server $1=$self->{name}'/;
    _run('sh', '-c', bin() . "/$command --no-sync");
    die 'the old server would not stream' if UrlStore::Test::slurp($auto)
        !~ /^primary_conninfo = '.*application_name=$self->{name}\b.*'$/m
        || !-e "$self->{data}/standby.signal";
    _spew($auto, '');
    $self->_follows($other);

    return $self->start;
}


sub archive
{
    my ($self) = @_;

    mkdir "$self->{dir}/archive" or die "archive: $!";
    _own("$self->{dir}/archive");
    $self->{set}{archive_mode} = 'on';
    $self->{set}{archive_command} = "cp %p $self->{dir}/archive/%f";

    return $self;
}


sub backup
{
    my ($self) = @_;

    remove_tree("$self->{dir}/backup");
    _run(bin() . '/pg_basebackup', '-D', "$self->{dir}/backup", '-c', 'fast',
        '-X', 'stream', '--no-sync', '-d', $self->_admin);
}


# what was not archived is in the data that is replaced

sub restore
{
    my ($self, %o) = @_;

    for my $wal (glob "$self->{data}/pg_wal/" . '[0-9A-F]' x 24) {
        _run('cp', '-n', $wal, "$self->{dir}/archive");
    }

    remove_tree($self->{data});
    _run('cp', '-a', "$self->{dir}/backup", $self->{data});
    _spew("$self->{data}/recovery.signal", '');
    $self->{set} = { %{ $self->{set} }, recovery_target_action => 'promote',
        restore_command => "cp $self->{dir}/archive/%f %p", %o };

    return $self;
}


# pg_receivewal, of such a name: its pid

sub receive
{
    my ($self, $name) = @_;

    mkdir "$self->{dir}/wal" or die "wal: $!";
    _own("$self->{dir}/wal");

    my $pid = fork // die "fork: $!";

    if (!$pid) {
        chdir '/';
        open STDERR, '>', '/dev/null';
        exec _as('--pdeathsig', 'TERM'), bin() . '/pg_receivewal', '-D',
            "$self->{dir}/wal", '--synchronous', '-d',
            $self->_admin . " application_name=$name" or POSIX::_exit(127);
    }

    return $pid;
}


sub _follows
{
    my ($self, $other) = @_;

    $self->{upstream} = $other;
    _spew("$self->{data}/standby.signal", '');
}


# through: a port of 127.0.0.1 instead of the upstream's

sub through { my ($self, $port) = @_; $self->{through} = $port; $self }


sub start
{
    my ($self, %o) = @_;

    $self->_configure;

    my $pid = fork // die "fork: $!";

    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', "$self->{dir}/log";
        open STDERR, '>&', \*STDOUT;
        exec _as('--pdeathsig', 'QUIT'), bin() . '/postgres', '-D',
            $self->{data} or POSIX::_exit(127);
    }

    $self->{pid} = $pid;

    my $end = time + 60;

    until ($self->ready) {
        if (time > $end || waitpid($pid, WNOHANG) == $pid) {
            delete $self->{pid};
            die "PostgreSQL did not start:\n" . $self->log;
        }

        sleep 0.02;
    }

    UrlStore::Test::see($pid, bin() . '/postgres');

    return $self;
}


sub ready
{
    my ($self) = @_;

    open my $fh, '<', "$self->{data}/postmaster.pid" or return 0;
    my @line = <$fh>;
    close $fh;

    return ($line[0] // 0) == $self->{pid} && ($line[7] // '') =~ /^ready/;
}


# how: fast, immediate, kill

sub stop
{
    my ($self, $how) = @_;

    my $pid = delete $self->{pid} // return $self;
    my @all = $how && $how eq 'kill' ? _family($pid) : $pid;

    kill { fast => 'INT', immediate => 'QUIT', kill => 'KILL' }
        ->{ $how // 'fast' }, @all;
    kill CONT => _family($pid);
    local $?;
    waitpid $pid, 0;
    unlink "$self->{data}/postmaster.pid";

    return $self;
}


sub pause { my ($self) = @_; kill STOP => _family($self->{pid}); $self }
sub resume { my ($self) = @_; kill CONT => _family($self->{pid}); $self }


sub promote
{
    my ($self) = @_;

    $self->sql('SELECT pg_promote(true, 60)');
    delete $self->{upstream};

    return $self;
}


# settings of a running server; undef: its default

sub set
{
    my ($self, %o) = @_;

    @{ $self->{set} }{keys %o} = values %o;
    $self->_configure;

    my $loaded = $self->sql('SELECT pg_conf_load_time()');

    kill HUP => $self->{pid};

    for (1 .. 500) {
        last if $self->sql('SELECT pg_conf_load_time()') ne $loaded;
        sleep 0.01;
    }

    return $self;
}


sub port { $_[0]{port} }


sub log
{
    my ($self) = @_;

    open my $fh, '<', "$self->{dir}/log" or return '';
    local $/;

    return <$fh>;
}


# a connection string; options: user, password, port or ports, hosts, db

sub conninfo
{
    my ($self, %o) = @_;

    my $hosts = $o{hosts} // [ $self ];
    my $ports = join ',', $o{ports} ? @{ $o{ports} }
        : map { $o{port} // $_->{port} } @$hosts;
    my $addrs = join ',', map { '127.0.0.1' } @$hosts;
    my $password = ($o{password} // $PASSWORD) =~ s/(['\\])/\\$1/gr;

    return "hostaddr=$addrs port=$ports dbname=" . ($o{db} // 'urlstore')
        . ' user=' . ($o{user} // 'urlstore') . " password='$password'"
        . (UrlStore::Test::longer() > 1 ? ' connect_timeout=20' : '');
}


# dies if a statement fails

sub sql
{
    my ($self, $sql, $db) = @_;

    my $out = _run(bin() . '/psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d',
        $self->_admin($db), '-c', $sql);

    chomp $out;

    return $out;
}


# what pg_dump has of the tables

sub dump
{
    my ($self) = @_;

    return _run(bin() . '/pg_dump', '-a', '-t', 'urlstore_*', '-d',
        $self->_admin);
}


# statements in a transaction that stays open

sub hold
{
    my ($self, $sql) = @_;

    my $pid = open(my $in, '|-') // die "fork: $!";

    if (!$pid) {
        chdir '/';
        open STDOUT, '>', '/dev/null';
        exec _as(), bin() . '/psql', '-Xq', '-d', $self->_admin
            or POSIX::_exit(127);
    }

    $in->autoflush(1);
    print $in "BEGIN; $sql;\n";

    for (1 .. 500) {
        last if $self->sql('SELECT count(*) FROM pg_stat_activity'
            . " WHERE state = 'idle in transaction'");
        sleep 0.01;
    }

    return bless { in => $in }, 'UrlStore::Postgres::Held';
}


sub _admin
{
    my ($self, $db) = @_;

    return "host=$self->{dir} port=$self->{port} user=postgres dbname="
        . ($db // 'urlstore');
}


sub _configure
{
    my ($self) = @_;

    my %set = (
        listen_addresses => '127.0.0.1', port => $self->{port},
        unix_socket_directories => $self->{dir}, fsync => 'off',
        wal_level => 'replica', max_wal_senders => 10, wal_keep_size => '512MB',
        wal_log_hints => 'on', shared_buffers => '32MB', max_connections => 40,
        hot_standby => 'on', jit => 'off', log_min_messages => 'warning',
        wal_retrieve_retry_interval => '100ms', synchronous_standby_names => '',
        autovacuum => 'off', wal_receiver_timeout => '5s',
        wal_sender_timeout => '5s', cluster_name => $self->{name},
        %{ $self->{set} }
    );

    if (my $up = $self->{upstream}) {
        my $port = $self->{through} // $up->{port};

        $set{primary_conninfo} = "host=127.0.0.1 port=$port user=postgres "
            . "application_name=$self->{name}";
    }

    _spew("$self->{data}/postgresql.conf", join '', map {
        defined $set{$_} ? "$_ = '" . ($set{$_} =~ s/'/''/gr) . "'\n" : ''
    } sort keys %set);
}


# initdb, the role, the tables; a stopped server's data to be copied

sub _model
{
    my $data = _root() . '/model';

    _run(bin() . '/initdb', '-D', $data, '-U', 'postgres', '-A', 'trust',
        '--no-sync', '--no-locale', '-E', 'UTF8');

    my $self = UrlStore::Postgres->new(name => 'model', _model => 1);

    $self->{data} = $data;
    _spew("$data/pg_hba.conf", "local all postgres trust\n"
        . "local replication postgres trust\n"
        . "host replication postgres 127.0.0.1/32 trust\n"
        . "host all postgres 127.0.0.1/32 trust\n"
        . "host all all 127.0.0.1/32 scram-sha-256\n");

    my $quoted = $PASSWORD =~ s/'/''/gr;

    $self->start;
    $self->sql("CREATE ROLE urlstore LOGIN PASSWORD '$quoted'", 'postgres');
    $self->sql('CREATE DATABASE urlstore', 'postgres');
    $self->schema('urlstore');
    $self->stop('fast');
    $MODEL = $data;
}


# the tables, in a database

sub schema
{
    my ($self, $db) = @_;

    # the file may be in a folder that nobody else can read

    my $copy = _root() . '/schema.sql';

    open my $fh, '<', "$TOP/conf/urlstore-schema.sql" or die $!;
    local $/;
    _spew($copy, scalar <$fh>);
    _run(bin() . '/psql', '-Xq', '-d', $self->_admin($db), '-f', $copy);
}


sub _root
{
    return $ROOT if $ROOT;

    $ROOT = tempdir('urlstore-pg-XXXXXX', TMPDIR => 1);
    _own($ROOT);

    return $ROOT;
}


sub _own
{
    return if $> != 0;

    my ($uid, $gid) = (getpwnam 'nobody')[2, 3];

    chown $uid, $gid, @_;
}


# the beginning of a command that does not run as root

sub _as
{
    my (@o) = @_;

    my $gid = (getpwnam 'nobody')[3];

    return ('setpriv', $> == 0 ? ('--reuid=nobody', "--regid=$gid",
        '--clear-groups') : (), @o) if $> == 0 || @o;

    return ();
}


# what a command prints; dies if it fails

sub _run
{
    my (@command) = @_;

    my $pid = open(my $out, '-|') // die "fork: $!";

    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        chdir '/';
        %ENV = (PATH => $ENV{PATH}, LANG => 'C');
        exec _as(), @command or POSIX::_exit(127);
    }

    my $text = do { local $/; <$out> } // '';

    close $out or die "@command: $text";

    return $text;
}


sub _spew
{
    my ($path, $text) = @_;

    open my $fh, '>', $path or die "$path: $!";
    print $fh $text;
    close $fh or die "$path: $!";
    _own($path);
}


# a process and all its children

sub _family
{
    my ($pid) = @_;

    my %parent;

    for (glob '/proc/[0-9]*/stat') {
        open my $fh, '<', $_ or next;
        my $stat = <$fh> // '';
        $parent{$1} = $2 if $stat =~ /^(\d+) \(.*\) \S (\d+)/s;
    }

    return ($pid, grep { $parent{$_} == $pid } keys %parent);
}


sub UrlStore::Postgres::Held::end
{
    my ($self) = @_;

    print { $self->{in} } "ROLLBACK;\n\\q\n";
    close $self->{in};
}


END {
    if ($$ == $MAIN) {
        local $?;

        $_->stop('immediate') for @SERVERS;
        remove_tree($ROOT) if $ROOT && !$ENV{US_LEAVE};
    }
}


1;
