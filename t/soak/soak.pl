#!/usr/bin/perl

# Everything at once, for hours: crawlers that add, look up, erase and use sets,
# exports, backups that are restored and compared, a replica with a directory;
# meanwhile workers and masters are killed, reloaded and stopped, and the disk
# is full or slow for a while.
#
#     make soak [HOURS=2] [SEED=N] [RATE=N]     RATE: new URLs a second (600)
#
# What is looked at all the time: a URL has one id for ever, and an id one URL;
# it is new once; what was acknowledged is there; what was erased is refused,
# and its id answers 410.  In the end the primary, before and after a restart
# and a kill, and the replica have what the crawlers were told, and no more.
#
# Memory and descriptors of the workers, and the bytes of the directory, go to
# build/soak/data each five seconds; a figure is made of it.  A worker's own
# memory must not be larger in the last third than in the first one by more than
# a quarter and 16 MB.
#
# The last line is "0 faults", and the status 0; or each fault has a line.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(remove_tree);
use POSIX qw(WNOHANG);
use Time::HiRes qw(sleep time);

use lib abs_path(dirname(__FILE__) . '/../lib');
use UrlStore::Corpora;
use UrlStore::Replica;
use UrlStore::Test;

use constant CRAWLERS => 3;
use constant BATCH => 100;                      # new URLs, and as many old ones

my $seconds = 3600 * ($ENV{HOURS} || 2);
my $seed = $ENV{SEED} || int time;
my $rate = $ENV{RATE} || 600;
my $top = $UrlStore::Test::TOP;
my $urlstore = "$top/build/urlstore";
my $out = "$top/build/soak";
my @text = ('Content-Type' => 'text/plain');

$| = 1;
srand $seed;
mkdir $out;
print "SEED=$seed, $seconds s\n";

my $mb = 256 + int $rate * $seconds * 60 / 1e6;
my $primary = UrlStore::Test->new(log => 'notice', judge => 0, disk => 1);
my $replica = UrlStore::Test->new(log => 'notice', judge => 0);
my $dir = $primary->dir;

$primary->run(zone_conf("${mb}m path=%%DIR%%/u sync=100ms snapshot=8m"
    . ' sets=64 sets_create=auto erase_within=30s', 'client_max_body_size 8m'));
$primary->ready(write => 1) or die 'the primary is not ready';
$replica->run(zone_conf("${mb}m follow=http://127.0.0.1:" . $primary->port
    . ' path=%%DIR%%/u snapshot=8m erase_within=30s'));

# paths of real URLs, in a form that normalization does not change

my @paths = map { m{^https?://[^/]+/([a-z0-9/_.-]{4,60}?)/*$}
    && $1 !~ m{//|\.\./|/\./|\.$|^\.|/\.} ? $1 : () }
    @{ corpus('reddit_submissions', 30000) };

die 'too few paths' if @paths < 1000;


# --- a crawler: URL number k of crawler c -----------------------------------

sub url
{
    my ($c, $k) = @_;

    return sprintf 'http://h%d.c%d.example/%s/%d', $k % 997, $c,
        $paths[$k * 7 % @paths], $k;
}


sub fault { my $text = join '', @_; print "FAULT $text\n"; die "$text\n" }


# a request until it is answered: the answer, and how often it was sent

sub ask
{
    my ($client, @request) = @_;
    my $last = 'no answer';

    for my $tries (1 .. 2400) {
        my $r = $client->request(@request);

        return ($r, $tries) if $r && $r->{status} !~ /^(429|50[0234])$/;

        $last = "$r->{status} $r->{body}" if $r;
        sleep 0.05;
    }

    fault("no answer in 120 s to $request[0] $request[1]: $last");
}


sub crawler
{
    my ($c) = @_;

    my $pid = fork() // die "fork: $!";
    return $pid if $pid;

    my ($end, @id, %gone) = (0);
    my $began = time;

    # ask() has to know how often a request was sent

    my $client = UrlStore::Client->new('127.0.0.1', $primary->port,
        no_retry => 1);

    srand $seed + $c;
    $SIG{TERM} = sub { $end = 1 };

    my $ok = eval {
        for (my $round = 0; !$end; $round++) {
            add($client, $c, \@id, \%gone);
            look($client, $c, \@id, \%gone) if $round % 5 == 0;
            erase($client, $c, \@id, \%gone) if $round % 40 == 39;

            my $ahead = $began + @id * CRAWLERS / $rate - time;

            sleep $ahead if $ahead > 0;
        }
        1;
    };

    print "crawler $c ends: $@" if !$ok;
    open my $f, '>', "$dir/crawler.$c" or POSIX::_exit(2);
    print $f map { "$_\t$id[$_]\t" . ($gone{$_} ? 1 : 0) . "\n" } 0 .. $#id;
    close $f;
    POSIX::_exit($ok ? 0 : 1);
}


sub add
{
    my ($client, $c, $id, $gone) = @_;

    my $next = @$id;
    my @k = ($next .. $next + BATCH - 1,
        map { $next ? int rand $next : () } 1 .. BATCH);
    my ($r, $tries) = ask($client, POST => "/add?set=crawl$c",
        join("\n", map { url($c, $_) } @k), @text);

    fault("add: $r->{status} $r->{body}") if $r->{status} != 200;

    my @lines = split /\n/, $r->{body};

    fault('answers: ' . @lines . ' to ' . @k) if @lines != @k;

    for my $i (0 .. $#k) {
        my ($got, $status, $url) = split /\t/, $lines[$i];
        my $k = $k[$i];
        my $want = $gone->{$k} ? 'refused' : $k < $next ? 'seen' : 'new';

        # what got no answer may have been done

        fault("$lines[$i], but $want is right, try $tries, URL $c/$k")
            if $status ne $want
                && !($want eq 'new' && $status eq 'seen' && $tries > 1);

        if ($k >= $next) {
            fault("$lines[$i]: another URL than " . url($c, $k))
                if $url ne url($c, $k);
            $id->[$k] = $got;

        } elsif (!$gone->{$k}) {
            fault("$lines[$i], but it had id $id->[$k]") if $got ne $id->[$k];
        }
    }
}


sub look
{
    my ($client, $c, $id, $gone) = @_;

    my $k = int rand @$id;
    my ($r) = ask($client, GET => "/url/$id->[$k]");
    my $right = $gone->{$k} ? $r->{status} == 410
        : $r->{status} == 200 && $r->{body} eq url($c, $k) . "\n";

    fault("/url/$id->[$k]: $r->{status} $r->{body}, URL $c/$k") if !$right;

    ($r) = ask($client, POST => '/seen', url($c, $k), @text);

    my $want = $gone->{$k} ? "-\tunseen\t" : "$id->[$k]\tseen\t";

    fault("/seen: $r->{body}, but $want, URL $c/$k")
        if $r->{status} != 200 || index($r->{body}, $want) != 0;
}


# by id or by URL: URLs of which no other crawler knows

sub erase
{
    my ($client, $c, $id, $gone) = @_;

    my %k = map { int(rand @$id) => 1 } 1 .. 20;
    my @k = grep { !$gone->{$_} } sort { $a <=> $b } keys %k;
    my $urls = rand() < .5;

    return if !@k;

    # before it is sent: a crawler that ends meanwhile does not know

    my ($r, $tries) = ask($client, POST => '/erase?reason=soak',
        join("\n", map { $urls ? url($c, $_) : $id->[$_] } @k), @text,
        'Idempotency-Key' => "\"e$c-$k[0]-" . @$id . '"');

    $gone->{$_} = 1 for @k;
    fault("erase: $r->{status} $r->{body}") if $r->{status} !~ /^20[02]$/;

    for (grep { !/^#/ } split /\n/, $r->{body}) {
        fault("erase: $_, try $tries")
            if !/^(\d+|-)\terased\t/ && !(/\tdeleted\b/ && $tries > 1);
    }
}


# --- a backup that is restored, and compared with what is there -------------

sub backup
{
    my ($n) = @_;

    my $pid = fork() // die "fork: $!";
    return $pid if $pid;

    my ($copy, $made) = map { "$dir/$_.$n" } qw(backup restored);
    my $ok = eval {
        my $ids;

        # /stats is also answered while a store is loaded

        wait_until(120, sub {
            my ($r) = ask($primary->client, GET => '/stats');

            defined($ids = $r->json->{next_id});
        }) or fault("backup $n: the store is not loaded");

        command('backup', '--rate', '200m', "$dir/u", $copy);
        command('restore', $copy, $made);
        command('verify', $made);

        open my $dump, '-|', $urlstore, 'dump', $made or die "dump: $!";

        my ($count, $wrong, $client) = (0, 0, $primary->client);
        my @some;

        while (my $line = <$dump>) {
            $count++;
            push @some, $line if rand() < .02;
        }

        close $dump or fault("backup $n: the dump failed");

        while (my @part = splice @some, 0, 500) {
            my %is = map { chomp; split /\t/ } @part;
            my ($q) = ask($client, GET => '/url?ids=' . join ',', keys %is);

            for (split /\n/, $q->{body}) {
                my ($id, $url) = (split /\t/)[0, -1];

                $wrong++, print "backup $n: $_, but $is{$id}\n"
                    if defined $is{$id} && $url ne $is{$id} && !/deleted/;
            }
        }

        my $gone = ask_deleted($client);

        fault("backup $n: $wrong URLs differ") if $wrong;
        fault("backup $n: $count URLs, $ids ids were given, $gone deleted")
            if $count + $gone < $ids;
        1;
    };

    print "backup $n: $@" if !$ok;
    remove_tree($copy, $made);
    POSIX::_exit($ok ? 0 : 1);
}


sub ask_deleted { return (ask($_[0], GET => '/stats'))[0]->json->{deleted} }


sub command
{
    my (@args) = @_;

    my $said = qx{@{[ join ' ', map { "'$_'" } $urlstore, @args ]} 2>&1};

    fault("urlstore @args: $said") if $?;
}


# --- what happens to them ---------------------------------------------------

my %harm = (
    'worker killed' => sub { $primary->kill_worker },
    'all killed' => sub { $primary->kill_all; $primary->start },
    'stopped' => sub { $primary->stop; $primary->start },
    'reloaded' => sub { $primary->reload },
    'disk full' => sub { $primary->disk('write 28'); sleep 3;
        $primary->disk('') },
    'disk slow' => sub { $primary->disk('slow 300'); sleep 3;
        $primary->disk('') },
    'replica, worker killed' => sub { $replica->kill_worker },
    'replica, all killed' => sub { $replica->kill_all; $replica->start },
    'replica reloaded' => sub { $replica->reload },
    'replica away' => sub { $replica->stop; sleep 5; $replica->start },
);


# --- memory: kB of a worker's own, descriptors; kB of the directory ---------

my @curve;

sub measure
{
    my ($began) = @_;
    my ($own, $fds) = (0, 0);

    for my $pid ($primary->worker_pids) {
        my ($kb) = slurp("/proc/$pid/smaps_rollup", 1)
            =~ /^Pss_Anon:\s+(\d+)/m;
        my @fds = glob "/proc/$pid/fd/*";

        $own = $kb if ($kb // 0) > $own;
        $fds = @fds if @fds > $fds;
    }

    my ($disk) = `du -sk $dir/u 2>/dev/null` =~ /^(\d+)/;
    my $r = $primary->client->request(GET => '/stats');
    my $urls = $r && $r->{status} == 200 ? $r->json->{urls} : 0;

    return if !$own || !$urls;

    push @curve, { own => $own, fds => $fds };
    open my $f, '>>', "$out/data" or die "$out/data: $!";
    printf $f "%.0f %d %d %d %d\n", time - $began, $own, $fds, $disk // 0,
        $urls;
    close $f;
}


sub median
{
    my @sorted = sort { $a <=> $b } @_;

    return $sorted[@sorted / 2];
}


sub figure
{
    open my $p, '|-', 'gnuplot' or die "gnuplot: $!";
    print $p <<"END";
set terminal svg size 900,400 font 'sans,13' background rgb 'white'
set output '$out/soak.svg'
set grid ytics lc rgb '#dddddd'
set xlabel 'minutes'
set ylabel 'MB'
set yrange [0:*]
set key top left
plot '$out/data' using (\$1/60):(\$2/1024) with lines lw 2 lc rgb '#2166ac' \\
         title "the largest worker's own memory", \\
     '' using (\$1/60):(\$4/1024) with lines lw 2 lc rgb '#b2182b' \\
         title 'the directory', \\
     '' using (\$1/60):(\$5*25/1048576) with lines lw 2 lc rgb '#999999' \\
         title '25 bytes a URL'
END

    close $p or die "gnuplot failed";
}


# --- the run ----------------------------------------------------------------

my ($faults, $backups, %count) = (0, 0);
my @crawlers = map { crawler($_) } 1 .. CRAWLERS;
my $backup;
my $began = time;
my $next = $began + 5;
my $look = $began;
my $copy = $began + ($seconds < 600 ? $seconds / 4 : 120);

unlink "$out/data";

while (time < $began + $seconds) {

    if (time >= $next) {
        my $what = (sort keys %harm)[rand keys %harm];

        $harm{$what}->();
        $count{$what}++;
        $next = time + 3 + rand 20;
    }

    if (time >= $look) {
        measure($began);
        $look = time + 5;
    }

    if (!$backup && time >= $copy) {
        $backup = backup(++$backups);
        $copy = time + 300;
    }

    if ($backup && waitpid($backup, WNOHANG) == $backup) {
        $faults++ if $?;
        $backup = undef;
    }

    for my $pid (@crawlers) {
        if (waitpid($pid, WNOHANG) == $pid) {
            print "a crawler has ended: $?\n";
            $faults++;
            $seconds = 0;
        }
    }

    sleep 0.1;
}

print join(', ', map { "$_: $count{$_}" } sort keys %count),
    ", backups: $backups\n";

kill TERM => @crawlers;

for my $pid (@crawlers, $backup // ()) {
    $faults++ if waitpid($pid, 0) == $pid && $?;
}


# --- the end: what the crawlers were told, and no more ----------------------

sub check
{
    my ($what, $ok, $why) = @_;

    return if $ok;

    $faults++;
    print "FAULT $what", defined $why ? ": $why" : '', "\n";
}

my (%url, %gone);

for my $c (1 .. CRAWLERS) {
    open my $f, '<', "$dir/crawler.$c" or die "crawler.$c: $!";

    while (<$f>) {
        my ($k, $id, $gone) = split;

        check('one id, two URLs', !exists $url{$id}, "$id, $c/$k");
        $url{$id} = $gone ? '' : url($c, $k);
        $gone{$id} = 1 if $gone;
    }
}

# what a crawler sent last may have got no answer: a batch each

sub same
{
    my ($what, $t) = @_;

    my ($from, $n, $more, $wrong) = (0, 0, 0, 0);

    while () {
        my ($r) = ask($t->client,
            GET => "/urls?from=$from&limit=100000&summary=1");
        my ($next) = $r->{body} =~ s/^# next=(\d+)\n//m ? $1 : $from;

        for (split /\n/, $r->{body}) {
            my ($id, $url) = split /\t/;

            $n++;
            exists $url{$id} ? $wrong += $url{$id} ne $url : $more++;
        }

        last if $next <= $from;
        $from = $next;
    }

    check("$what: URLs under other ids", $wrong == 0, $wrong);
    check("$what: URLs that nobody was told of", $more <= CRAWLERS * BATCH,
        $more);
    check("$what: URLs that are lost", $n - $more == keys(%url) - keys(%gone),
        keys(%url) - keys(%gone) - ($n - $more));
}

$primary->disk('');
check('the primary is ready', $primary->ready(write => 1, within => 60));
same('primary', $primary);
check('the replica is level', level($primary, $replica, 60),
    $replica->get('/health')->{body});
same('replica', $replica);

my $differs = differs($primary, $replica);

check('the replica has the same', $differs eq '', $differs);

my $left = 1;

wait_until(60, sub {
    my $r = $primary->get('/erase?limit=1000000');

    return 0 if $r->{status} != 200;

    $left = grep { @{ $_->{left} } } @{ $r->json->{erasures} };

    return !$left;
});

check('bytes of erasures are left', $left == 0, $left);
check('it stops', $primary->stop);
$primary->start;
$primary->ready(write => 1, within => 60);
same('after a restart', $primary);
$primary->kill_all;
$primary->start;
$primary->ready(write => 1, within => 60);
same('after a kill', $primary);

my $log = $primary->error_log . $replica->error_log;
my @bad = grep { !/exited on signal 9|was locked by|No space left|it is tried/ }
    $log =~ /^.*\[(?:alert|crit|emerg)\].*$/mg;

check('the log', !@bad, join "\n", @bad[0 .. ($#bad < 9 ? $#bad : 9)]);

figure() if @curve;

my $third = int @curve / 3;

if ($third >= 20) {
    my ($first, $last) = map { median(map { $_->{own} } @$_) }
        [ @curve[$third / 2 .. $third] ], [ @curve[2 * $third .. $#curve] ];
    my ($fds, $fds_last) = map { median(map { $_->{fds} } @$_) }
        [ @curve[0 .. $third] ], [ @curve[2 * $third .. $#curve] ];

    printf "a worker's memory: %d kB at first, %d in the end; descriptors %d,"
        . " %d\n", $first, $last, $fds, $fds_last;
    check('memory', $last <= 1.25 * $first + 16384, "$first kB, $last kB");
    check('descriptors', $fds_last <= $fds + 8, "$fds, $fds_last");
}

printf "%d URLs, %d erased\n", scalar keys %url, scalar keys %gone;
print "$faults faults\n";
$_->stop for $primary, $replica;
exit($faults ? 1 : 0);
