#!/usr/bin/perl

# build/bench/engine: its parts add up, its answers are right, and a zone that
# is filled holds as many URLs as the bytes in use promise.
#
# Benchmarks of the server run at a small scale: the first line says what they
# read, and they end with 0.

use strict;
use warnings;

use File::Temp qw(tempdir);
use JSON::PP ();
use Test::More;

use lib 't/lib';
use UrlStore::Corpora;
use UrlStore::Test ();


sub bench
{
    my $out = `build/bench/engine --json @_`;

    is($?, 0, "bench @_");

    return JSON::PP->new->decode($out);
}


# a benchmark of make's, with variables: what it prints

sub target
{
    my ($name, @variables) = @_;

    my $out = `env @variables bench/$name/run.pl 2>&1`;

    is($?, 0, "bench/$name/run.pl @variables") or diag($out);
    like($out, qr/\AURLs: .*\b(?:generated|t\/data)/, 'what it reads');
    unlike($out, qr/uninitialized| at bench/, 'no warning');

    return $out;
}


# a directory with a wrk that sends the first and the last requests once, and
# reports as wrk does

sub fake_wrk
{
    my $dir = tempdir(CLEANUP => 1);

    UrlStore::Test::spew("$dir/wrk", <<"END" . <<'END');
#!/usr/bin/perl
use lib '$UrlStore::Test::TOP/t/lib';
END
use strict;
use warnings;
use UrlStore::Client;

my ($script) = "@ARGV" =~ /-s (\S+)/;
my ($port) = "@ARGV" =~ m|127\.0\.0\.1:(\d+)|;
my ($case, $dir, $kind) = @ARGV[-3 .. -1];
my $client = UrlStore::Client->new('127.0.0.1', $port);
my @requests;

if ($script =~ /batch/) {
    @requests = map { [ 'POST', $case, lines($_) ] }
        grep { /\d$/ } glob "$dir/$kind.*";
    splice @requests, 3 if @requests > 3;

} else {
    @requests = map { [ 'GET', $_ ] } split /\n/, lines($kind);
    splice @requests, 100, -100 if @requests > 200;
}

# all of a file

sub lines
{
    open my $fh, '<', $_[0] or die "$_[0]: $!";
    local $/;
    return <$fh>;
}

my $n = @requests;
my $bad = grep { $client->request(@$_)->{status} != 200 } @requests;

print "$n requests in 1s\n";
print "Non-2xx or 3xx responses: $bad\n" if $bad;
print "Requests/sec: $n\n";
END
    chmod 0755, "$dir/wrk";

    return $dir;
}


# a directory with a server that answers as Redis does, and keeps nothing

sub fake_peer
{
    my ($called) = @_;
    my $dir = tempdir(CLEANUP => 1);

    UrlStore::Test::spew("$dir/$called", "#!$^X\n" . <<'END');
use strict;
use warnings;
use IO::Select;
use IO::Socket::UNIX;

my %option = @ARGV % 2 ? () : @ARGV;

die 'a port' if ($option{'--port'} // 0) ne '0';
print "A server v=9.8.7 sha=0\n" and exit if "@ARGV" eq '--version';

unlink $option{'--unixsocket'};

my $listen = IO::Socket::UNIX->new(Local => $option{'--unixsocket'},
    Listen => 1) or die $!;

while (my $client = $listen->accept) {
    my $select = IO::Select->new($client);
    my ($in, $out) = ('', '');

    # a client sends more while it is being answered

    $client->blocking(0);

    while (my ($can) = IO::Select->select($select,
        $out eq '' ? undef : $select))
    {
        if (@$can) {
            sysread $client, $in, 65536, length $in or last;
            $out .= answers(\$in);
        }

        substr $out, 0, syswrite($client, $out) // 0, '';
    }
}

# to all whole commands, which are removed

sub answers
{
    my ($in) = @_;
    my $out = '';

    while (my ($n) = $$in =~ /\A\*(\d+)/) {
        $$in =~ s/\A\*$n\r\n((?:\$\d+\r\n[^\r]*\r\n){$n})// or last;
        my ($command) = $1 =~ /([A-Z]+)/;

        $n -= 2;
        $out .= $command eq 'INFO' ? "\$16\r\nused_memory:1234\r\n"
            : $command eq 'SMISMEMBER' ? "*$n\r\n" . ":1\r\n" x $n
            : ":$n\r\n";
    }

    return $out;
}
END
    chmod 0755, "$dir/$called";

    return $dir;
}


my $urls = tempdir(CLEANUP => 1) . '/urls';

# US_FULL=1 takes a list with many repetitions, too

for my $name ('html_news_blogs_pages',
    $ENV{US_FULL} ? 'trackawesomelist_md' : ())
{
    open my $f, '>', $urls or die "$urls: $!";
    print $f "$_\n" for @{ corpus($name, 100_000) }, @{ generated(100_000) };
    close $f or die "$urls: $!";

    my $all = bench($urls);
    my $full = bench('--fill', $urls);
    my $sum = 0;

    is($all->{errors} + $full->{errors}, 0, 'no wrong answer');

    $sum += $_ for values %{$all->{parts}};
    is($sum, $all->{zone_bytes}, 'the parts are the bytes in use');

    $sum = 0;
    $sum += $_ for values %{$full->{parts}};
    is($sum, $full->{zone_size}, 'and with what is free the zone');

    cmp_ok($full->{urls}, '<', $all->{urls}, 'it became full');
    cmp_ok($full->{zone_size} / $full->{urls}, '<',
        1.05 * $all->{zone_bytes} / $all->{urls},
        'SIZE for each URL of a full zone is at most 5 % more');
    cmp_ok($all->{bytes_per_url}, '<', 28, 'and that is little');
}

my $some = bench('--zone', '4m', '--limit', 1000, '--shuffle', 1, '--huge',
    corpus_file('zhihu_hot_daily'));

is($some->{zone_size}, 4 << 20, '--zone');
cmp_ok($some->{urls}, '<=', 1000, '--limit: lines');
cmp_ok($some->{urls}, '>', 500, 'and no fewer');

my $out = target('http', "PATH=@{[ fake_wrk() ]}:$ENV{PATH}", 'LINES=5000',
    'SECONDS=.2', 'ROUNDS=1');

like($out, qr/^GET \/seen known +2 +\d+ /m, 'single requests');
like($out, qr/^\/add 10 % new +2 +\d/m, 'batches');

$out = target('stream', 'LINES=2000', 'ROUNDS=1',
    'LISTS=html_mdn_archived_pages');
unlike($out, qr/ 0\.000/, 'each pass takes time');

$out = `build/bench/sets 1000000`;
is($?, 0, 'build/bench/sets');
like($out, qr/^50 %, in order +[45]\d{5} +0\.2\d+ +0\.\d+ +\d+ +\d+$/m,
    'half of the ids');
like($out, qr/^a drop of \d+ members: .* \d+ bytes left$/m, 'a drop');

$out = target('durability', 'LINES=0', 'RESTART=100000', 'ROUNDS=1');
like($out, qr/^just before a snapshot, killed +\d/m, 'restarts');

$out = target('cold', 'URLS=120000', 'BATCHES=5', 'HOWS=memory');
like($out, qr/^known, random +memory +100 +\d{3,} +0\.000( +\d\S*){7}$/m,
    'known URLs, found in the zone of a file');
like($out, qr/^new, added +memory +100 +500 /m, 'new ones');

$out = target('peers', 'LIMIT=500',
    "PATH=@{[ fake_peer('valkey-server') ]}:$ENV{PATH}");
like($out, qr/^urlstore +yes +yes +yes +\d/m, 'a row');
like($out, qr/^Valkey SADD +yes +no +yes( +\d\S*){4}$/m, 'one of a server');
like($out, qr/^Redis.*; Valkey 9\.8\.7$/m, 'its version');

$out = `PATH=/none $^X -It/lib -MUrlStore::Peer -e 'print about_peers()'`;
is($out, 'Redis: not installed here; Valkey: not installed here',
    'servers that are missing');

done_testing();
