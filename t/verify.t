#!/usr/bin/perl

# urlstore import, dump, stat and verify on a directory; and what only verify
# can find: a record whose bits are no URL, in a block whose CRC is right.

use strict;
use warnings;

use lib 't/lib';
use Digest::SHA qw(sha1_hex);
use File::Temp qw(tempdir);

use UrlStore::Test;

my $urlstore = "$UrlStore::Test::TOP/build/urlstore";
my $dir = tempdir(CLEANUP => 1) . '/data';
my $lines = corpus('trackawesomelist_md', 2000);

sub import_lines
{
    open my $fh, '|-', "$urlstore import $dir 2>&1 >/dev/null"
        or die "import: $!";
    print $fh map { "$_\n" } @_;
    return close $fh;
}

ok(import_lines(@$lines[0 .. 39]), 'imported');

my $dump = `$urlstore dump $dir`;
my $n = $dump =~ tr/\n//;
cmp_ok($n, '>', 30, 'dumped');
like(`$urlstore verify $dir`,
    qr/^ok .* $n ids read back, 0 deleted, 0 damaged$/m, 'verified');
is($?, 0, 'with 0');
like(`$urlstore stat $dir`, qr/^ids\s+$n$/m, 'stat');

# the file: header, one block

my ($file) = glob("$dir/journal.*");
my $whole = slurp($file);
my $seed = unpack 'V', substr $whole, 60, 4;
my $len = unpack 'V', substr $whole, 68, 4;

is(length $whole, 64 + 48 + $len, 'one block');
is(crc32c(0, substr $whole, 0, 60), $seed, "the header's CRC");
is(crc32c($seed, substr($whole, 64, 44) . substr($whole, 112)),
    unpack('V', substr $whole, 108, 4), "the block's CRC");

# one more add, of bits that no model decodes

sub block
{
    my ($payload) = @_;

    my $head = substr $whole, 64, 44;
    substr($head, 4, 4) = pack 'V', length $payload;

    return substr($whole, 0, 64) . $head
        . pack('V', crc32c($seed, $head . $payload)) . $payload;
}

my $payload = substr $whole, 112;
is(block($payload), $whole, 'the test writes the same');

spew($file, block("$payload\4\377\377"));
my $out = `$urlstore verify $dir`;
is($? >> 8, 1, 'a record that is no URL: verify fails');
like($out, qr/^DAMAGED  id $n is no URL, given by "journal\.0+" at offset 64$/m,
    'and says where');
like($out, qr/^DAMAGED .* @{[ $n + 1 ]} ids read back, 0 deleted, 1 damaged$/m,
    'and how many');
like($out, qr/^ok       journal/m, 'though the file is whole');

# a server with a copy of it: the error log names the id of which a client gets
# 500

my $t = UrlStore::Test->new;
my $data = $t->dir . '/data';
system("cp -r $dir $data");
system("chown -R nobody:nogroup $data") if $> == 0;
$t->allow(qr/\[alert\].*the record of id $n is damaged/);
$t->run(<<'CONF');
urlstore_zone u 32m path=%%DIR%%/data;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

my $logged = 0;

ok(wait_until(10, sub { $t->get('/url/0')->{status} == 200 }), 'a server');

for ([ GET => "/url/$n" ], [ DELETE => "/url/$n?erase=1" ]) {
    my ($method, $uri) = @$_;

    is($t->request($method, $uri)->{status}, 500, "$method $uri: 500");
    is(scalar(() = $t->error_log =~ /the record of id $n is damaged/g),
        ++$logged, '  and an alert');
}

# any bytes at the end: no crash, and not the same URLs without a word

my ($crashed, $quiet) = (0, 0);

for my $from (1 .. 24) {
    for my $byte ("\0", "\x55", "\xff") {
        my $bad = $payload;
        substr($bad, -$from, 8) = substr $byte x 8, 0, $from;
        spew($file, block($bad));

        my $code = system("$urlstore verify $dir >/dev/null");
        my $text = `$urlstore dump $dir 2>/dev/null`;

        $crashed++ if $code & 127 || $? & 127;
        $quiet++ if $code == 0 && $text eq $dump;
    }
}

is($crashed, 0, 'no crash');
is($quiet, 0, 'no change without consequence');

spew($file, $whole);
is(`$urlstore dump $dir`, $dump, 'as before');

# a last group with which a model is learnt, and then a snapshot is taken

$dir = tempdir(CLEANUP => 1) . '/data';
my @sites = grep { m{^https?://[\w.-]+/[^?#]*$} } @$lines;
my $k = 0;

ok(import_lines(map {
    $sites[$k++ % @sites] . "?$k=" . sha1_hex($k) . sha1_hex("$k again")
} 1 .. 32768), 'imported as many as a model is learnt from');
like(`$urlstore stat $dir`, qr/^ids\s+32768$/m, '  all of them');
ok(glob("$dir/snapshot.*"), '  with a snapshot');
is(system("$urlstore verify $dir >/dev/null"), 0, '  that fits the journal');
ok(import_lines($lines->[0]), '  and it goes on');
is(`$urlstore dump $dir` =~ tr/\n//, 32769, '  with one more');

# beside a writer: what is answered while verify reads is no damage

$dir = tempdir(CLEANUP => 1) . '/data';
open my $writer, '|-', "$urlstore add $dir >/dev/null" or die "add: $!";

my $damaged = 0;

for my $round (1 .. 60) {
    print $writer map { "http://w.example/$round/$_/" . sha1_hex($_) . "\n" }
        1 .. 1000;
    wait_until(5, sub { -s "$dir/watermark" });
    $damaged++ if `$urlstore verify --fast $dir` =~ /^DAMAGED/m;
}

ok(close($writer), 'added');
is($damaged, 0, 'verified 60 times meanwhile');

# a block that is damaged, with whole ones after it: nobody reads past it as if
# that were the end

$dir = tempdir(CLEANUP => 1) . '/data';
ok(import_lines(@$lines[0 .. 19]), 'imported');
my $before = `$urlstore dump $dir`;
my ($journal) = glob "$dir/journal.*";
my $good = -s $journal;
ok(import_lines(@$lines[20 .. 29]), '  more') && ok(import_lines(
    @$lines[30 .. 39]), '  and more');

my $bytes = slurp($journal);

substr($bytes, $good + 30, 1) ^= "\1";
spew($journal, $bytes);

for my $command (['dump', '', 1], ['dump --sorted', '', 1], ['get', '0', 2],
    ['seen', 'http://a.example/', 2], ['verify', '', 1], ['stat', '', 1],
    ['import', '/dev/null', 2])
{
    my ($name, $args, $code) = @$command;
    my $said = `$urlstore $name $dir $args 2>&1 < /dev/null`;

    is($? >> 8, $code, "a damaged block: $name returns $code");
    like($said, qr/at offset $good: a block's CRC is wrong/, '... and where');
}

is(`$urlstore dump $dir 2>/dev/null`, $before,
    '... dump prints what is before it');
