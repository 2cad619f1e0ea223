#!/usr/bin/perl

# urlstore add, seen and get: a directory and a service give the same answers,
# on the same lines, with the same exit codes.

use strict;
use warnings;

use lib 't/lib';
use IO::Socket::INET;
use UrlStore::Fake;
use UrlStore::Test;

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 16m;
urlstore_filter f 1m capacity=1000 error=.0001;
urlstore_zone kept 16m path=%%DIR%%/kept www=keep;
server {
    listen 127.0.0.1:%%PORT%%;
    location /some/store/ { urlstore_api u; }
    location /kept/ { urlstore_api kept; }
    location /few/ { urlstore_api u; urlstore_max_batch 100; }
    location /few/filter/ { urlstore_api f; urlstore_max_batch 100; }
    location /moved/ { return 301 http://127.0.0.1:%%PORT%%/some/store/; }
    location = /late/seen {
        if (-e %%DIR%%/now) { rewrite ^ /some/store/seen last; }
        add_header Retry-After 1 always;
        return 503;
    }
}
CONF

my ($dir, $port) = ($t->dir, $t->port);
my $many = join '', map { "http://many.test/$_\n" } 0 .. 2500;

spew("$dir/urls", "http://WWW.a.test/x\n\nhttp://a.test/x\r\nftp://b.test/\n"
    . "nothing\nhttp://a.test/y");
spew("$dir/many", $many);


# output and exit code

sub ask
{
    my ($arguments, $in) = @_;

    spew("$dir/in", $in // '');

    my $out = `timeout 100 build/urlstore $arguments <$dir/in 2>$dir/err`;

    return $out . ($? >> 8) . "\n" . slurp("$dir/err");
}


for my $store ("$dir/store", "http://127.0.0.1:$port/some/store",
    "http://localhost:$port/some/store/")
{
    # the last two are one store: it is asked again

    my $again = $store =~ /localhost/;
    my ($new, $n) = $again ? ('seen', 2503) : ('new', 2503);

    is(ask("add $store $dir/urls"), "0\t$new\thttp://www.a.test/x\n"
        . "0\tseen\thttp://www.a.test/x\n-\tinvalid\tscheme\n"
        . "-\tinvalid\tno-base\n1\t$new\thttp://www.a.test/y\n1\n",
        "add: $store");
    is(ask("add --new $store", "http://www.a.test/y\nhttp://c.test/\n"),
        $again ? "0\n" : "http://c.test/\n0\n", '--new');
    is(ask("seen $store $dir/urls -", "http://a.test/z\n"),
        "0\tseen\thttp://www.a.test/x\n0\tseen\thttp://www.a.test/x\n"
        . "-\tinvalid\tscheme\n-\tinvalid\tno-base\n"
        . "1\tseen\thttp://www.a.test/y\n-\tunseen\thttp://www.a.test/z\n1\n",
        'seen');
    is(ask("seen --unseen $store", "http://a.test/x\nhttp://d.test/\n"),
        "http://d.test/\n1\n", '--unseen');
    is(ask("seen $store", "http://c.test/\n"), "2\tseen\thttp://c.test/\n0\n",
        'all are seen');
    is(ask("get $store 2 0 9999"),
        "2\thttp://c.test/\n0\thttp://www.a.test/x\n9999\t-\tunknown\n1\n",
        'get');
    is(ask("get $store", "1\n"), "1\thttp://www.a.test/y\n0\n",
        'of standard input');
    is(ask("add --new $store $dir/many"), ($again ? '' : $many) . "0\n",
        'several batches');
    is(ask("get $store", join '', map { "$_\n" } 3 .. 2503),
        $many =~ s/^.*?(\d+)$/($1 + 3) . "\t$&"/gemr . "0\n", 'back again');

    for my $bad ('x', '2 x', '-- -1', '99999999999999999999', '1/2') {
        like(ask("get $store $bad"), qr/^2\nurlstore: ".*" is not an id/,
            "get $bad");
    }
}


# dump: the ids that a service has

my $service = "http://127.0.0.1:$port/some/store";
my $ids = ask("dump $service");

is($ids, ask("dump $dir/store"), 'dump of a service, as of a directory');
is($ids =~ tr/\t//, 2504, '  all of it');
$t->request('DELETE', '/some/store/url/2500');
is(ask("dump $service"), $ids =~ s/^2500\t.*\n//mr, '  without a deleted one');
is(ask("dump --deleted $service"), $ids =~ s/^2500\t\K.*$/-/mr,
    '  or with its id');
like(ask("dump $_ $service"), qr/^2\nusage: /, "  $_: of a directory only")
    for '--times', '--sorted';
like(ask("dump http://127.0.0.1:$port"), qr/^2\n.*stats: 404: /,
    '  no service');

# answers that are cut off are asked for again; what is not whole is an error

my $lacks = "1\nurlstore: URL: 1 of 2504 ids were not answered\n";

for (['in a line', "0\n", sub { $_[0] == 1 ? substr $_[1], 0, -9 : $_[1] }],
    ['at a line', "0\n", sub { $_[0] == 1 ? $_[1] =~ s/.+\n\z//r : $_[1] }],
    ['unavailable', $lacks, sub { $_[1] =~ s/^7\t.*/7\t-\tunavailable/mr }],
    ['another id', $lacks, sub { $_[1] =~ s/^7\t/8\t/mr }],
    ['anew', "2\nurlstore: URL: its store has become another one meanwhile\n",
        sub { $_[0] > 3 ? $_[1] =~ s/"epoch":1/"epoch":2/r : $_[1] }])
{
    my ($what, $end, $change) = @$_;
    my $proxy = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5);
    my $url = 'http://127.0.0.1:' . $proxy->sockport . '/some/store';
    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        alarm 30;

        for (my $n = 0; my $from = $proxy->accept; $n++) {
            my $request = '';

            sysread $from, $request, 65536, length $request
                until $request =~ /^GET .*\r\n\r\n/s
                || $request =~ /Length: (\d+).*?\r\n\r\n(.*)/s
                    && length $2 == $1;

            my $to = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                PeerPort => $port);

            $to->print($request);
            print $from $change->($n, join('', <$to>) =~ s/Content-L/X-L/r)
                =~ s/\AHTTP\S+ (\d+).*?\r\n\r\n/HTTP\/1.1 $1 x\r\n\r\n/rs;
            close $from;
        }
    }

    my $got = ask("dump $url") =~ s/\Q$url\E/URL/r;

    kill 'TERM', $pid;
    waitpid $pid, 0;
    like($got, qr/\n\Q$end\E\z/, "dump, $what");
    is($got =~ tr/\t//, 2503 - ($end eq $lacks), '  and what is printed');
}


# beside an owner; and of a store that was made with www=keep

my $kept = "http://127.0.0.1:$port/kept";

like(ask("add $kept $dir/urls"), qr/^1\tnew\thttp:\/\/a.test\/x$/m, 'www=keep');
is(ask("seen $dir/kept", "http://a.test/x\n"), "1\tseen\thttp://a.test/x\n0\n",
    'seen beside the service');
is(ask("get $dir/kept 0"), "0\thttp://www.a.test/x\n0\n", 'get, too');
like(ask("add $dir/kept $dir/urls"), qr/^2\nurlstore: .*kept.*owned by/,
    'add is refused');


# what is no store

for (['none', qr/none": No such file/], ["$dir/tmp", qr/there is no store/],
    ['https://a.test/', qr/is not http:/], ['http://', qr/has no host/],
    ['http://a:b/', qr/no port from 1 to 65535/],
    ['http://a/?x', qr/has a path that is too long/],
    ['http://127.0.0.1:1/', qr/127.0.0.1:1: Connection refused/],
    ["http://127.0.0.1:$port/nothing", qr/seen: 404: /],
    ["http://127.0.0.1:$port", qr/seen: 404: /])
{
    my ($store, $why) = @$_;

    mkdir "$dir/tmp";
    like(ask("seen $store", "http://a.test/\n"), qr/^2\nurlstore: .*$why/,
        "no store: $store");
}

# claims are not of a new directory: none is made

like(ask("add --older 30d $dir/claims", "http://a.test/\n"),
    qr/^2\nurlstore: .*claims": it keeps no claims/, 'no claims');
ok(!-e "$dir/claims", '  and no directory');

# sets: of a service and of a directory, in the same words

$t->request('PUT', '/kept/set/a');
is(ask("add --set a $kept", "http://set.test/\n") =~ s/^\d+//r,
    "\tnew\thttp://set.test/\n0\n", 'add --set');
is(ask("add --set a $kept", "http://set.test/\n") =~ s/^\d+//r,
    "\tseen\thttp://set.test/\n0\n", '  once');
like(ask("seen --set a $kept", "http://never.test/\n"),
    qr/^-\tunseen\t/, 'seen --set');
like(ask("add --set b $kept", "http://set.test/\n"),
    qr/^2\n.*404: there is no set "b"$/m, 'no such set');
like(ask("add --set a/b $kept", ''), qr/^2\n.*invalid name/, 'no name');
like(ask("add --set a --older 1d $kept", ''), qr/^2\n.*exclude/,
    'with --older');
like(ask("seen --set a $dir/store", "http://a.test/\n"), qr/has no set "a"/,
    'a directory without the set');

my $sets = "$dir/sets";

ask("add $sets", "http://a.test/\nhttp://b.test/\nhttp://c.test/\n");
is(ask("set list $sets", ''), "0\n", 'set list: none');
like(ask("set make $sets x y", ''),
    qr/^x\t0\t128\t\d{10}\t0\ny\t0\t128\t\d{10}\t0\n0$/, 'set make');
is(ask("add --set x $sets", "http://b.test/\nhttp://d.test/\nbad:\n"),
    "1\tnew\thttp://b.test/\n3\tnew\thttp://d.test/\n-\tinvalid\tscheme\n"
    . "1\n", 'add --set DIR');
is(ask("add --new --set x $sets", "http://b.test/\nhttp://a.test/\n"),
    "http://a.test/\n0\n", '  once');
is(ask("seen --set x $sets", "http://c.test/\nhttp://b.test/\nhttp://z/\n"),
    "2\tunseen\thttp://c.test/\n1\tseen\thttp://b.test/\n"
    . "-\tunseen\thttp://z/\n1\n", 'seen --set DIR');
is(ask("add --set new $sets", "http://c.test/\n"),
    "2\tnew\thttp://c.test/\n0\n", '  makes the set');
is(ask("dump --set x $sets", ''), "0\thttp://a.test/\n1\thttp://b.test/\n"
    . "3\thttp://d.test/\n0\n", 'dump --set');
is(ask("dump --set !x $sets", ''), "2\thttp://c.test/\n0\n", '  the others');
like(ask("dump --sorted --set new $sets", ''), qr/^http:..c.test.\n0\n/,
    '  sorted');
like(ask("dump --set none $sets", ''), qr/^2\n.*has no set "none"/, '  none');
like(ask("set list $sets x new", ''),
    qr/^x\t3\t144\t\d+\t0\nnew\t1\t144\t\d+\t0\n0$/, 'set list NAME');
like(ask("set drop $sets y none x", ''), qr/^1\n.*no set "none"/,
    'set drop');
like(ask("set list $sets", ''), qr/^new\t1\t\d+\t\d+\t0\n0$/,
    '  drops those that there are');
like(ask("set list $sets x", ''), qr/^1\n.*no set "x"/, '  of one');
like(ask("set $_", ''), qr/^2\n/, "set $_")
    for 'list', "list $dir/none", "make $dir/none a", "make $sets",
        "make $sets a/b", "take $sets a", "drop http://127.0.0.1:1 a";
ok(!-e "$dir/none", '  makes no directory');
is(ask("set make $kept b", '') =~ s/\d{10}/T/r, "b\t0\t128\tT\t0\n0\n",
    'set make http://');
like(ask("set list $kept", ''), qr/^a\t1\t\d+\t\d+\t3\nb\t0\t.*\n0$/m,
    '  list');
is(ask("dump --set a $kept", '') =~ s/^\d+//r, "\thttp://set.test/\n0\n",
    'dump --set http://');
unlike(ask("dump --set !a $kept", ''), qr/set.test/, '  the others');

# of one that always has more, and of one that does not go on

my $fake = UrlStore::Fake->new(sub {
    my ($name, $n, $target) = @_;
    return { json => { next_id => 3, epoch => 1 } } if $target =~ m{/stats};
    my ($from) = $target =~ /from=(\d+)/;
    my $next = $name eq 'more' ? $from + 1 : $from;
    return { text => "$from\thttp://$from.test/\n# next=$next\n" };
});
my $endless = 'http://127.0.0.1:' . $fake->port . '/x';

is(ask("dump --set a $endless/more", ''), join('', map {
    "$_\thttp://$_.test/\n" } 0 .. 2) . "0\n", '  ends at its first next_id');
like(ask("dump --set a $endless/less", ''), qr/^2\n.*does not go on/m,
    '  says that a list does not go on');
is(ask("set drop $kept b", ''), "0\n", 'set drop http://');
like(ask("set drop $kept b", ''), qr/^1\n.*404: there is no set "b"/,
    '  once');
like(ask("dump --set b $kept", ''), qr/^2\n.*no set "b"; no id from 0/,
    'dump of no set');

# 503 for a while

my $child = fork() // die "fork: $!";

if ($child == 0) {
    sleep 2;
    spew("$dir/now", '');
    POSIX::_exit(0);
}

is(ask("seen http://127.0.0.1:$port/late", "http://a.test/x\n"),
    "0\tseen\thttp://www.a.test/x\n0\n", 'asks again after 503');
waitpid $child, 0;

# a 503 in mid-batch, of a service that does not repeat what it has answered:
# what the next try has seen may be this command's; as after a reply that was
# lost, or that a proxy has not waited for; not if the answer repeats it

my $mixed = "0\tseen\thttp://a/\n1\tnew\thttp://b/\n";
my $both = "http://a/\nhttp://b/\n";

for (["503 x\r\n\r\n{\"processed\":1}", '', $mixed, 1],
    ["503 x\r\n\r\n{\"processed\":1}", '--new', $both, 1],
    ["503 x\r\n\r\n{\"processed\":0}", '--new', "http://b/\n", 0],
    ["503 x\r\n\r\n{\"status\":503}", '--new', "http://b/\n", 0],
    ["502 x\r\n\r\n<html>", '--new', $both, 1],
    ["504 x\r\n\r\n<html>", '', $mixed, 1],
    ["504 x\r\n\r\n{\"processed\":0}", '--new', "http://b/\n", 0],
    ["200 OK\r\n\r\n" . substr($mixed, 0, -3), '--new', $both, 1],
    ["200 OK\r\n\r\n0\tseen\thttp://a/\n", '--new', $both, 1],
    ['200', '--new', $both, 1],
    ['200', '--new', "http://b/\n", 0, "Idempotency-Status: repeated\r\n"])
{
    my ($first, $option, $out, $unsure, $header) = @$_;

    $header //= '';

    my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5);
    my $at = '127.0.0.1:' . $server->sockport;

    $child = fork() // die "fork: $!";

    if ($child == 0) {
        alarm 30;

        for my $answer ("HTTP/1.1 $first",
            "HTTP/1.1 200 OK\r\n$header\r\n$mixed")
        {
            my $from = $server->accept;
            my $request = '';

            sysread $from, $request, 65536, length $request
                until $request =~ /\r\n\r\n.*b\/\n\z/s;
            print $from $answer;
            close $from;
        }

        POSIX::_exit(0);
    }

    my $said = $unsure ? "urlstore: $at/add: 1 lines are \"seen\" after a try "
        . "whose answer was lost, which may have added them\n" : '';

    is(ask("add $option http://$at", $both), "${out}0\n$said",
        "unsure, $option, " . $first =~ s/\W+/ /gr);
    waitpid $child, 0;
}

# a service that takes fewer lines at once has added some before it refuses the
# rest: none is lost; a filter has no ids, so its "seen" may be of that try

{
    my $corpus = "t/data/corpora/reddit_submissions.txt.xz";
    my @sample = map { chomp; $_ } `xz -dc $corpus | head -n 300`;
    my $urls = join '', map { "$_\n" } @sample;
    my $at = "http://127.0.0.1:$port/few";
    my %new = map { $_ => 1 } ask("add --new $at", $urls) =~ /^(.*)$/mg;

    is(delete $new{0}, 1, 'exit 0');
    is(keys %new, keys %{{ map { (split /\t/)[2] => 1 }
        split /\n/, ask("seen $at", $urls) =~ s/^0\n//mr }},
        'all that were new are printed');

    my $filtered = ask("add --new $at/filter", $urls);

    is(scalar(() = $filtered =~ /^http/mg) >= keys %new, 1,
        'unsure ones, too') or diag($filtered);
}

# all tries of a batch are lost, or the last is refused: it may be there

for ([ 405, '{"detail":"no"}' ]) {
    my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5);
    my $at = '127.0.0.1:' . $server->sockport;

    $child = fork() // die "fork: $!";

    if ($child == 0) {
        alarm 30;

        for my $answer ('', "HTTP/1.1 $_->[0] x\r\n\r\n$_->[1]") {
            my $from = $server->accept;
            my $request = '';

            sysread $from, $request, 65536, length $request
                until $request =~ /\r\n\r\n.*b\/\n\z/s;
            print $from $answer;
            close $from;
        }

        POSIX::_exit(0);
    }

    is(ask("add --new http://$at", $both), "2\nurlstore: $at/add: $_->[0]: no"
        . "\nurlstore: a try may have added some of 2 lines that have no "
        . "answer here, from \"http://a/\" on\n", "lost, then $_->[0]");
    waitpid $child, 0;
}

like(ask("dump http://127.0.0.1:$port/moved"),
    qr{^2\nurlstore: 127\.0\.0\.1:$port/moved/stats: 301: \S},
    'dump says that the address has moved');

# a shard of a router has not answered: that URL may be "seen" the next time

{
    my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5);

    $child = fork() // die "fork: $!";

    if ($child == 0) {
        alarm 30;

        for my $answer ("-\tunavailable\tunknown:1\n1\tnew\thttp://b/\n",
            "-\tunavailable\tshard:1\n1\tnew\thttp://b/\n")
        {
            my $from = $server->accept;
            my $request = '';

            sysread $from, $request, 65536, length $request
                until $request =~ /\r\n\r\n.*b\/\n\z/s;
            print $from "HTTP/1.1 200 OK\r\n\r\n$answer";
            close $from;
        }

        POSIX::_exit(0);
    }

    my $at = 'http://127.0.0.1:' . $server->sockport;

    is(ask("add --new $at", $both), "http://b/\n1\nurlstore: it may have been "
        . "added, unknown:1: http://a/\n", 'unknown:1');
    is(ask("add --new $at", $both), "http://b/\n1\n", 'shard:1');
    waitpid $child, 0;
}

# a wait that is longer than the command tries: not begun, be the answer whole
# or cut off

for (["429 x\r\nRetry-After: 3600\r\n\r\n{\"detail\":\"the quota is used up\"}",
        qr{/add: 429: the quota is used up}],
    ["503 x\r\nRetry-After: 3600\r\nContent-Length: 99\r\n\r\n{",
        qr{: the answer is cut off}],
    ["200 OK\r\nRetry-After: 3600\r\n\r\n0\tnew\thttp://a/\n",
        qr{/add: 1 answers to 2 lines}])
{
    my ($answer, $why) = @$_;

    my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5);
    my $at = '127.0.0.1:' . $server->sockport;

    $child = fork() // die "fork: $!";

    if ($child == 0) {
        alarm 30;

        my $from = $server->accept;
        my $request = '';

        sysread $from, $request, 65536, length $request
            until $request =~ /\r\n\r\n.*b\/\n\z/s;
        print $from "HTTP/1.1 $answer";
        POSIX::_exit(0);
    }

    close $server;
    like(ask("add http://$at", $both),
        qr/^2\nurlstore: \Q$at\E$why; it asks to wait 3600 s\n/,
        'Retry-After: 3600');
    waitpid $child, 0;
}

# a reply that is lost on its way: asked again, with the same key, and answered
# as the first try

for my $cut (0, 30, -5) {
    my $proxy = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5);
    my $away = $proxy->sockport;

    $child = fork() // die "fork: $!";

    if ($child == 0) {
        alarm 30;

        for my $n (1 .. 3) {
            my $from = $proxy->accept;
            my $to = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                PeerPort => $port);
            my $request = '';

            sysread $from, $request, 65536, length $request
                until $request =~ /\r\n\r\n.*\n\z/s;

            $to->print($request);
            my $reply = join '', <$to>;
            spew("$dir/try.$cut.$n", $request . $reply);

            print $from substr $reply, 0, $n < 3 ? $cut : length $reply;
            close $from;
        }

        POSIX::_exit(0);
    }

    my $url = "http://lost.test/$cut";

    like(ask("add http://127.0.0.1:$away/some/store", "$url\n"),
        qr{^\d+\tnew\t\Q$url\E\n0\n\z}, "the answer is cut at $cut");
    waitpid $child, 0;

    my @tries = map { slurp("$dir/try.$cut.$_") } 1 .. 3;
    my ($key) = $tries[0] =~ /^Idempotency-Key: ("[0-9a-f]{32}")\r$/m;

    ok($key, 'it has a key');
    is(scalar(grep { /^Idempotency-Key: \Q$key\E\r$/m } @tries), 3,
        'that all tries have');
    is(join(' ', map { /^Idempotency-Status: (\w+)/m } @tries),
        'repeated repeated repeated', 'what is new is so to each');
}
