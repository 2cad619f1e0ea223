package UrlStore::Test;

# A private nginx with the module, for one test file.
#
#     use UrlStore::Test;
#
#     my $t = UrlStore::Test->new->run(<<'CONF');
#     urlstore_zone u 16m;
#     server {
#         listen 127.0.0.1:%%PORT%%;
#         location / { urlstore_api u; }
#     }
#     CONF
#
#     is($t->get('/health')->{status}, 200, 'ready');
#     is($t->post('/add', "http://example.com/\n")->{body},
#         "0\tnew\thttp://example.com/\n", 'added');
#
# run() wraps the text in http { }, unless it has an http block of its own.
# In the text, %%PORT%% .. %%PORT9%% are free ports, %%DIR%% is the prefix (a
# temporary directory), %%TOP%% the project's root.
#
# At the end of every file, for free: no [alert], [crit] or [emerg] in the
# error log but for what was declared by allow() or by kill_worker(); no
# report of a sanitizer or of valgrind; nginx ended by its signal, with 0.
# So a file ends without done_testing().
#
# The environment:
#
#     US_ASAN=1       the module of `make asan` (AddressSanitizer, UBSan)
#     US_VALGRIND=1   nginx under valgrind (slow)
#     US_FULL=1       whole lists of URLs (tests ask full())
#     US_HUP=1        a reload before every request() of the test object
#     US_ROUTE=N      routers over N shards in place of zones
#                     (UrlStore::Route); run() needs a text of the http block
#     US_LEAVE=1      keeps the prefix directory
#     US_NGINX, US_MODULE, US_POSTGRES_MODULE   other places
#     CORPORA         where lists of URLs are (UrlStore::Corpora)
#
# Core Perl only.

use strict;
use warnings;

use base 'Exporter';

use Cwd qw(abs_path);
use Fcntl qw(:DEFAULT :flock);
use File::Basename qw(dirname);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP ();
use POSIX qw(:sys_wait_h);
use Socket qw(SOL_SOCKET SO_REUSEADDR);
use Test::More;
use Time::HiRes qw(sleep time);

use UrlStore::Client;
use UrlStore::Corpora;
use UrlStore::Route;

our @EXPORT = (@Test::More::EXPORT, @UrlStore::Corpora::EXPORT, qw(
    http no_faults full routed same_urls summary_ids member_ids json uri_escape
    slower longer wait_until slurp spew alive crc32c resealed
    zone_conf need_fault_disk need_fault_clock
));

our $TOP = abs_path(dirname(__FILE__) . '/../../..');
our $POSTGRES = $ENV{US_POSTGRES_MODULE}
    // "$TOP/build/ngx_http_urlstore_postgres_module.so";
our $FAULT_DISK = "$TOP/build/faults/disk.so";
our $FAULT_CLOCK = "$TOP/build/faults/clock.so";

my @TESTS;                 # objects of this process, for the END block
my $MAIN = $$;
my $EMULATED = 0;          # a server of this process is in an emulator

# a connection that the server has closed: the END block stops the servers

$SIG{PIPE} = sub { die "SIGPIPE\n" };


sub import
{
    strict->import;
    warnings->import;
    __PACKAGE__->export_to_level(1, @_);
}


# options: workers (2), daemon (0; 1 for binary upgrades, which nginx refuses
# to do below the shell that started it), log (info), user (of the workers,
# when root runs the test: nobody), globals (lines of the main context), env,
# disk (1: it writes to the disk of t/fault/disk.c, see disk()), clock (1: it
# has that of t/fault/clock.c, see clock()), judge (1; 0: no tests at the end,
# for benchmarks)

sub new
{
    my ($class, %o) = @_;

    my $self = bless {
        workers => 2, daemon => 0, log => 'info', globals => '', env => {},
        judge => 1,
        user => 'nobody nogroup', allow => [], pid => undef, ports => {},
        %o
    }, $class;

    $self->{dir} = tempdir('urlstore-XXXXXXXX', TMPDIR => 1);
    $self->{nginx} = $ENV{US_NGINX} || _nginx();
    $self->{module} = $ENV{US_MODULE} // "$TOP/build/"
        . ($ENV{US_ASAN} ? 'asan/' : '') . 'ngx_http_urlstore_module.so';

    if ($self->{module} ne '' && !-e $self->{module}) {
        Test::More::BAIL_OUT("no $self->{module}: run make"
            . ($ENV{US_ASAN} ? ' asan' : ''));
    }

    make_path("$self->{dir}/logs");

    if ($> == 0) {
        my ($uid, $gid) = (getpwnam((split ' ', $self->{user})[0]))[2, 3];
        chown $uid, $gid, $self->{dir}, "$self->{dir}/logs";
    }

    chmod 0755, $self->{dir};

    if ($self->{disk}) {
        $self->{globals} .= ' env US_DISK;';
        $self->{env} = { %{ $self->{env} }, LD_PRELOAD => $FAULT_DISK,
            US_DISK => "$self->{dir}/disk" };
    }

    if ($self->{clock}) {
        $self->clock(0);
        $self->{globals} .= ' env US_CLOCK;';
        $self->{env} = { %{ $self->{env} }, LD_PRELOAD => join(' ',
                $self->{env}{LD_PRELOAD} // (), $FAULT_CLOCK),
            US_CLOCK => "$self->{dir}/clock" };
    }

    push @TESTS, $self;
    return $self;
}


sub _nginx
{
    return "$TOP/build/asan/nginx" if $ENV{US_ASAN};

    for my $dir ("$TOP/build/debian/usr/sbin", split(/:/, $ENV{PATH}),
        '/usr/sbin', '/usr/local/sbin')
    {
        return "$dir/nginx" if -x "$dir/nginx";
    }

    Test::More::BAIL_OUT('no nginx: run make deps');
}


# the prefix directory, the port number n (0, 1, ...)

sub dir { $_[0]{dir} }
sub port
{
    my ($self, $n) = @_;

    return $self->{ports}{$n || 0} //= free_port();
}


# Below the ephemeral range, so that no outgoing connection takes it between
# the test and nginx's bind.  Until this process ends the port is bound, also
# while its server is down: a plain bind fails then, that of another test, too,
# and one with SO_REUSEADDR succeeds, that of servers, as nobody listens.
# Processes that run at the same time have pids close to each other: each looks
# at 64 ports of its own first.

my $PORTS = 0;
my @BOUND;

sub free_port
{
    for (1 .. 1000) {
        my $port = 10000 + ($$ * 64 + $PORTS++) % 22000;

        my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1',
            LocalPort => $port, Proto => 'tcp') or next;

        setsockopt $s, SOL_SOCKET, SO_REUSEADDR, 1 or die "setsockopt: $!";
        push @BOUND, $s;
        return $port;
    }

    die "no free port";
}


sub expand
{
    my ($self, $text) = @_;

    $text =~ s/%%PORT(\d?)%%/$self->port($1 || 0)/ge;
    $text =~ s/%%DIR%%/$self->{dir}/g;
    $text =~ s/%%TOP%%/$TOP/g;

    return $text;
}


# The text of a zone u with these parameters, and of a server that has all of
# its endpoints.  Directives of the http block may follow.

sub zone_conf
{
    my ($zone, @directives) = @_;

    return join("\n", "urlstore_zone u $zone;", map { "$_;" } @directives)
        . <<'CONF';

server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location = /log { urlstore_log u; }
}
CONF
}


# writes nginx.conf from the text, see the head of this file

sub conf
{
    my ($self, $text) = @_;

    my $dir = $self->{dir};
    my $user = $> == 0 ? "user $self->{user};" : '';
    my $daemon = $self->{daemon} ? 'on' : 'off';
    my $load = $self->{module} ne '' ? "load_module $self->{module};" : '';

    # a binary upgrade passes on only what is named

    $load .= "\nenv ASAN_OPTIONS;\nenv UBSAN_OPTIONS;" if $ENV{US_ASAN};

    $text = UrlStore::Route::conf($self, routed(), $text) if routed();
    $text = "http {\n%%HTTP%%\n$text\n}\n" if $text !~ /^\s*http\s*\{/m;

    my $temp = join "\n", map { "    ${_}_temp_path $dir/$_;" }
        qw(client_body proxy fastcgi uwsgi scgi);

    my $http = <<EOF;
    access_log off;
    default_type text/plain;
$temp
EOF

    if ($text !~ s/%%HTTP%%/$http/) {
        $text =~ s/^(\s*http\s*\{)/$1\n$http/m;
    }

    spew("$dir/nginx.conf", $self->expand(<<EOF . $text));
$load
$user
daemon $daemon;
worker_processes $self->{workers};
pid $dir/nginx.pid;
error_log $dir/error.log $self->{log};
$self->{globals}
events { worker_connections 512; }
EOF

    return $self;
}


# starts nginx; text as for conf(), unless that was called before

sub run
{
    my ($self, $text) = @_;

    $self->conf($text) if defined $text;

    for my $try (1 .. 3) {
        return $self if $self->_start;

        last if ($self->error_log . slurp("$self->{dir}/stderr", 1))
            !~ /Address already in use/ || !defined $text;

        # somebody else took the port

        $self->{ports} = {};
        unlink "$self->{dir}/error.log", "$self->{dir}/stderr";
        $self->conf($text);
    }

    Test::More::diag(map { slurp($_, 1) } "$self->{dir}/error.log",
        "$self->{dir}/stderr", glob("$self->{dir}/sanitizer.*"));
    die "nginx did not start";
}


# starts it again after stop() or kill_all(), with the same configuration

sub start
{
    my ($self) = @_;

    return $self->run;
}


sub _command
{
    my ($self, @args) = @_;

    my @cmd = ($self->{nginx}, '-p', $self->{dir}, '-c',
        "$self->{dir}/nginx.conf", '-e', "$self->{dir}/error.log", @args);

    if ($ENV{US_VALGRIND}) {
        unshift @cmd, 'valgrind', '-q', '--vgdb=no', '--trace-children=yes',
            "--log-file=$self->{dir}/valgrind.%p";
    }

    return @cmd;
}


# in the child: the environment of sanitizers and of the test

sub _environ
{
    my ($self) = @_;

    if ($ENV{US_ASAN}) {
        # each module has an ngx_module_names of its own

        $ENV{ASAN_OPTIONS} = "detect_leaks=0:abort_on_error=1"
            . ":detect_odr_violation=0"
            . ":log_path=$self->{dir}/sanitizer";
        $ENV{UBSAN_OPTIONS} = "print_stacktrace=1"
            . ":log_path=$self->{dir}/sanitizer";
    }

    $ENV{$_} = $self->{env}{$_} for keys %{ $self->{env} };
}


sub _start
{
    my ($self) = @_;

    unlink "$self->{dir}/nginx.pid";
    UrlStore::Route::start($self) if routed();

    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', "$self->{dir}/stderr";
        open STDERR, '>>', "$self->{dir}/stderr";
        $self->_environ;
        exec $self->_command or POSIX::_exit(127);
    }

    if ($self->{daemon}) {
        waitpid $pid, 0;
        return 0 if $? != 0;
    }

    # nginx is up when the first port of the text answers

    my @ports = map { $self->{ports}{$_} } sort keys %{ $self->{ports} };

    my $up = wait_until(30, sub {
        return -1 if !$self->{daemon} && waitpid($pid, WNOHANG) == $pid;
        return 0 if !-s "$self->{dir}/nginx.pid";
        return 1 if !@ports;

        return IO::Socket::INET->new(PeerAddr => '127.0.0.1',
            PeerPort => $ports[0]) ? 1 : 0;
    });

    return 0 if $up != 1;

    $self->{pid} = $self->{daemon} ? $self->pid : $pid;

    see($self->{pid}, $self->{nginx});

    return !routed() || UrlStore::Route::adopt($self);
}


# a process of a program: if it is emulated, its file is the emulator, which is
# for another machine

sub see
{
    my ($pid, $program) = @_;

    my ($runs, $made) = map { _machine($_) } "/proc/$pid/exe", $program;

    $EMULATED = 1 if $runs && $made && $runs ne $made;
}


# the machine that a program is for: e_machine of its ELF header

sub _machine
{
    my ($file) = @_;

    open my $f, '<:raw', $file or return '';
    read $f, my $head, 20;

    return substr $head // '', 18;
}


# Runs nginx -t on a text (or on the present configuration): the exit code and
# what it said.  A text is not kept.

sub check
{
    my ($self, $text) = @_;

    my $old = slurp("$self->{dir}/nginx.conf", 1);

    $self->conf($text) if defined $text;

    my @cmd = $self->_command('-t');

    $cmd[$_] = "$self->{dir}/check.log"
        for grep { $cmd[$_ - 1] eq '-e' } 1 .. $#cmd;

    my $pid = open(my $fh, '-|') // die "fork: $!";

    if ($pid == 0) {
        open STDERR, '>&', \*STDOUT;
        $self->_environ;
        exec @cmd or POSIX::_exit(127);
    }

    local $/;
    my $out = <$fh> // '';
    close $fh;
    my $rc = $? >> 8;

    spew("$self->{dir}/nginx.conf", $old) if defined $text && $old ne '';

    return ($rc, $out);
}


# the master's pid as it stands in the pid file

sub pid
{
    my ($self) = @_;

    my ($pid) = slurp("$self->{dir}/nginx.pid", 1) =~ /(\d+)/;
    return $pid;
}


# the pids of the workers (children of the master that are not shutting down)

sub worker_pids
{
    my ($self, $master) = @_;

    $master //= $self->{pid} // return;

    return workers($master, "$self->{dir}/error.log");
}


# The same of any master, with its error log.  A process has the title that it
# gave itself, but for one in an emulator (qemu, valgrind), whose command line
# stands there all the time: of those the log tells; without notices, all are
# returned, also those that shut down.

sub workers
{
    my ($master, $log) = @_;

    my @children = split ' ', slurp("/proc/$master/task/$master/children", 1);

    if (slurp("/proc/$master/cmdline", 1) =~ /master process/) {
        return grep {
            slurp("/proc/$_/cmdline", 1) =~ /worker process(?! is shutting)/
        } @children;
    }

    my ($text, %works) = slurp($log, 1);

    while ($text =~ /start\ worker\ process\ (\d+)$
        | \ (\d+)\#\d+:\ (?:gracefully\ shutting\ down|exiting)$/mgx)
    {
        $works{$1 // $2} = defined $1;
    }

    return %works ? grep { $works{$_} } @children : @children;
}


# Skips the file where t/fault/disk.c cannot be preloaded: for those that use
# new(disk => 1).

sub need_fault_disk
{
    plan(skip_all => 'the sanitizer wants to be loaded first')
        if $ENV{US_ASAN};
    die "no $FAULT_DISK: run make test-programs\n" if !-e $FAULT_DISK;
}


# What the disk of t/fault/disk.c does from now on: "slow 100", or '' for
# nothing.  The server reads the file at any time: it is never half written.

sub disk
{
    my ($t, $does) = @_;

    spew("$t->{dir}/disk.new", $does);
    rename "$t->{dir}/disk.new", "$t->{dir}/disk" or die "rename: $!";
}


# The same for new(clock => 1), and its time: so many seconds ahead of the
# machine's.

sub need_fault_clock
{
    plan(skip_all => 'the sanitizer wants to be loaded first')
        if $ENV{US_ASAN};
    die "no $FAULT_CLOCK: run make test-programs\n" if !-e $FAULT_CLOCK;
}


sub clock
{
    my ($t, $ahead) = @_;

    # the server has it mapped: it must stay the same file

    sysopen my $fh, "$t->{dir}/clock", O_RDWR | O_CREAT or die "clock: $!";
    syswrite $fh, pack('q', $ahead) or die "clock: $!";
    close $fh;
}


# declares that workers will be killed: what nginx says of that is no fault

sub allow_kills
{
    my ($self) = @_;

    return $self->allow(qr/worker process \d+ exited on signal \d+/,
        qr/shared memory zone "[^"]+" was locked by \d+/);
}


# kills one worker, or the one with this pid; the pid, if there was one

sub kill_worker
{
    my ($self, $signal, $pid) = @_;

    my @pids = $self->worker_pids;

    $pid ||= @pids ? $pids[rand @pids] : return;

    $self->allow_kills;

    return kill($signal || 'KILL', $pid) ? $pid : undef;
}


sub signal
{
    my ($self, $signal) = @_;

    kill $signal, $self->{pid};
}


# HUP, and waits until all workers are new; false if the reload was refused

sub reload
{
    my ($self, $text) = @_;

    $self->conf($text) if defined $text;

    my %old = map { $_ => 1 } $self->worker_pids;
    my $from = length $self->error_log;

    # an old worker of Angie still answers on a connection that was kept

    delete $self->{client};

    kill 'HUP', $self->{pid};

    return wait_until(30, sub {
        my @now = $self->worker_pids;

        return 1 if @now && !grep { $old{$_} } @now;
        return -1 if substr($self->error_log, $from) =~ /\[emerg\]/;
        return 0;
    }) == 1;
}


# Stops nginx (QUIT by default: requests under way are answered); true if it
# left with 0 and in time.

sub stop
{
    my ($self, $signal) = @_;

    my $pid = delete $self->{pid} or return 1;
    my $status;

    kill $signal || 'QUIT', $pid;

    my $done = wait_until(20, sub {
        return !kill(0, $pid) if $self->{daemon};

        my $got = waitpid($pid, WNOHANG);
        $status = $? if $got == $pid;
        return $got != 0;
    });

    if (!$done) {
        Test::More::diag("nginx did not leave in time");
        kill 'KILL', $pid, split ' ',
            slurp("/proc/$pid/task/$pid/children", 1);
        waitpid($pid, 0);
        return 0;
    }

    if ($status && ($signal // '') ne 'KILL') {
        Test::More::diag("nginx left with status $status");
        return 0;
    }

    return 1;
}


# kills the master and its workers at once

sub kill_all
{
    my ($self) = @_;

    my $pid = delete $self->{pid} or return;

    # stopped first, so that it makes no children meanwhile

    kill 'STOP', $pid;
    wait_until(5, sub { slurp("/proc/$pid/stat", 1) !~ /\) [^TZX] / });

    my @all = (split(' ', slurp("/proc/$pid/task/$pid/children", 1)),
        $pid);

    kill 'KILL', @all;
    waitpid($pid, 0);

    wait_until(10, sub { !grep { alive($_) } @all });
}


# Whoever inherits a process may leave it a zombie for a while: gone it is when
# all its threads are, which share its files.

sub alive
{
    my ($pid) = @_;

    return grep { slurp($_, 1) =~ /\) [^ZX] / } glob("/proc/$pid/task/*/stat");
}


sub error_log
{
    my ($self) = @_;

    return slurp("$self->{dir}/error.log", 1);
}


# declares lines of the error log that are no fault

sub allow
{
    my ($self, @re) = @_;

    for my $re (@re) {
        push @{ $self->{allow} }, $re
            if !grep { $_ eq $re } @{ $self->{allow} };
    }

    return $self;
}


# Waits until it answers, each time over a connection of its own.  Options:
# below (the path of its location, ''), write (1: adds, too), within (20 s).

sub ready
{
    my ($self, %o) = @_;

    my $path = ($o{below} // '') . '/health' . ($o{write} ? '?write=1' : '');

    return wait_until($o{within} // 20, sub {
        my $r = $self->client->request('GET', $path);
        return $r && $r->{status} == 200;
    });
}


# --- requests -----------------------------------------------------------


# a keep-alive client to port number n: see UrlStore::Client

sub client
{
    my ($self, $n) = @_;

    return UrlStore::Client->new('127.0.0.1', $self->port($n));
}


# (method, path, body, header => value ...): an answer, status 0 if none came

sub request
{
    my ($self, @args) = @_;

    $self->reload if $ENV{US_HUP};

    $self->{client} //= $self->client;

    return $self->{client}->request(@args)
        // UrlStore::Answer->none("no answer to $args[0] $args[1]");
}


sub get    { my ($t, $path, @h) = @_; $t->request('GET', $path, undef, @h) }
sub post   { my $t = shift; $t->request('POST', @_) }
sub forget { my ($t, $path, @h) = @_; $t->request('DELETE', $path, undef, @h) }


# POST /add of n lines from this one on

sub add
{
    my ($t, $lines, $from, $n) = @_;

    return $t->post('/add', join("\n", @$lines[$from .. $from + $n - 1])
        . "\n");
}


# Sends bytes as they are and returns what comes back until the connection
# ends.  Options: port (its number), and those of UrlStore::Client::raw().

sub http
{
    my ($t, $raw, %o) = @_;

    return UrlStore::Client::raw('127.0.0.1', $t->port($o{port}), $raw, %o);
}


# --- what tests need ----------------------------------------------------


# A test that a campaign has found none; of those that it has found, 20.

sub no_faults
{
    my ($faults, $what) = @_;

    my @some = @$faults > 20 ? (@$faults[0 .. 19], @$faults . ' in all')
        : @$faults;

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    return Test::More::is(join("\n", @some), '', $what);
}


sub full { return $ENV{US_FULL} ? 1 : 0 }


# over how many shards the routers of this run are; 0: there are none

sub routed { return $ENV{US_ROUTE} // 0 }


# GET /stats of a location, as JSON; of a router, what shard 0 has answered

sub stats
{
    my ($t, $below) = @_;

    my $stats = $t->get(($below // '') . '/stats')->json;

    return routed() ? $stats->{shards}{0} : $stats;
}


# Compares a list of /urls in text.  That of a router ends with its cursor,
# wanted or not, in place of the "# next=ID" that a zone adds to it.

sub same_urls
{
    my ($got, $expected, $what) = @_;

    if (routed()) {
        $expected =~ s/^# next=\d+\n\z//m;
        $got =~ s/^# cursor=[\w-]+ more=[01]\n\z//m
            or return Test::More::fail("$what: no cursor");
    }

    return Test::More::is($got, $expected, $what);
}


# The end of a summary, by the next id and the epoch: in text, and as members.
# Of a router, those of shard 0, and of former owners, which have no URLs.

sub summary_ids
{
    my ($next, $epoch) = @_;

    return " next_id=$next epoch=$epoch" if !routed();

    my @next = ($next, map { $_ << 40 } 1 .. routed() - 1);

    return ' next_ids=' . join(',', map { "$_:$next[$_]" } 0 .. $#next)
        . ' epochs=' . join(',', map { "$_:$epoch" } 0 .. $#next);
}


sub member_ids
{
    my ($next, $epoch, $asked) = @_;

    return (next_id => $next, epoch => $epoch) if !routed();

    my @next = ($next, map { $_ << 40 } 1 .. ($asked // routed()) - 1);

    return (next_ids => { map { $_ => $next[$_] } 0 .. $#next },
        epochs => { map { $_ => $epoch } 0 .. $#next });
}


sub json
{
    my ($text) = @_;

    return eval { JSON::PP->new->utf8->allow_nonref->decode($text) };
}


sub uri_escape
{
    my ($s) = @_;

    utf8::encode($s) if utf8::is_utf8($s);
    $s =~ s/([^A-Za-z0-9._~-])/sprintf('%%%02X', ord $1)/ge;
    return $s;
}


# whether servers of this process run in an emulator

sub emulated { return $EMULATED }


# How many times as much of a processor's time a server takes as it takes by
# itself, at most: for tests that bound it.

sub slower
{
    return $ENV{US_VALGRIND} ? 100 : $EMULATED ? 20 : $ENV{US_ASAN} ? 5 : 1;
}


# By what the seconds are multiplied that a test gives to a server: to answer,
# or to renew a lease.

sub longer { return slower() > 5 ? 5 : 1 }


# Asks until the answer is true, or the seconds are over: the answer.  The
# seconds are those of a machine that does nothing else, here are more.

sub wait_until
{
    my ($seconds, $code) = @_;

    $seconds *= 4 * longer();

    my $end = time + $seconds;

    for ( ;; ) {
        my $got = $code->();
        return $got if $got;
        return 0 if time > $end;
        sleep 0.01;
    }
}


sub slurp
{
    my ($path, $quiet) = @_;

    open my $fh, '<:raw', $path or do {
        return '' if $quiet;
        die "$path: $!";
    };

    local $/;
    return scalar(<$fh>) // '';
}


sub spew
{
    my ($path, $data) = @_;

    open my $fh, '>:raw', $path or die "$path: $!";
    print $fh $data;
    close $fh or die "$path: $!";
}


# CRC-32C (Castagnoli), reflected; begun with another CRC

sub crc32c
{
    my ($crc, $data) = @_;

    $crc ^= 0xffffffff;

    for my $byte (unpack 'C*', $data) {
        $crc ^= $byte;
        $crc = $crc >> 1 ^ ($crc & 1 ? 0x82f63b78 : 0) for 1 .. 8;
    }

    return $crc ^ 0xffffffff;
}


# the text of a manifest that was changed, with its CRC

sub resealed
{
    my ($text) = @_;

    $text =~ s/^crc32c.*//ms;

    return $text . sprintf "crc32c %08x\n", crc32c(0, $text);
}


# --- the end of every file ----------------------------------------------


sub _finish
{
    my ($self) = @_;

    delete $self->{client};

    Test::More::ok($self->stop, 'nginx left in peace');

    my @bad = grep { /\[(?:alert|crit|emerg)\]/ } split /\n/,
        $self->error_log;

    for my $re (@{ $self->{allow} }) {
        @bad = grep { !/$re/ } @bad;
    }

    Test::More::is(join("\n", @bad[0 .. ($#bad > 9 ? 9 : $#bad)]), '',
        'no alerts');

    my $reports = '';

    for my $f (glob("$self->{dir}/sanitizer.* $self->{dir}/valgrind.*"),
               "$self->{dir}/error.log", "$self->{dir}/stderr")
    {
        my $text = slurp($f, 1);

        $reports .= $text if $f =~ m|/valgrind\.\d+$| && $text =~ /^==/m
            || $text =~ /(?:Address|UndefinedBehavior|Leak|Thread)Sanitizer/
            || $text =~ /runtime error:/;
    }

    Test::More::is(substr($reports, 0, 8000), '', 'no reports of sanitizers');
}


END {
    if ($$ == $MAIN) {
        my $rc = $?;
        my $plan = Test::More->builder->has_plan;

        for my $t (@TESTS) {
            if ($rc == 0 && !$plan && $t->{judge}) {
                $t->_finish;

            } else {
                Test::More::diag(substr($t->error_log, -3000)) if $rc;
                $t->stop('TERM');
            }
        }

        # a server may use a directory of another one: all have left now

        for my $t (@TESTS) {
            if ($ENV{US_LEAVE}) {
                Test::More::diag("left: $t->{dir}");

            } else {
                remove_tree($t->{dir}, { safe => 0 });
            }
        }

        Test::More::done_testing() if $rc == 0 && !$plan
            && Test::More->builder->current_test;

        $? = $rc if $rc;
    }
}


1;
