#!/usr/bin/perl

# urlstore normalize: lines, JSON lines, options, exit codes.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempfile);
use Test::More;

my $top = abs_path(dirname(__FILE__) . '/..');


is(run('', "http://Example.COM\r\n\nftp://x/\n a\n"),
   "0: http://example.com/|!no-base|!scheme|!no-base", 'lines');
is(run('', "http://example.com"), '0: http://example.com/',
   'a last line without an end');
is(run('', ''), '0: ', 'nothing');
is(run('--base http://a.b/c/d', "../e\n#f\n//g\n"),
   '0: http://a.b/e|http://a.b/c/d|http://g/', '--base');
is(run('--base c', "http://x/\n"), '0: !no-base', 'a bad --base');
is(run('--profile whatwg', "ftp://x\nhttp://u\@x/#f\n"),
   '0: ftp://x/|http://u@x/#f', 'whatwg answers every scheme');
is(run('--profile crawler-clean', "http://x/?gclid=1&a\n"),
   '0: http://x/?a', 'crawler-clean');
is(run('--profile aggressive', "http://x//a?b=1&a=1\n"),
   '0: http://x/a?a=1&b=1', 'aggressive');

is(run('--json', <<'IN'), <<'OUT' =~ s/\n/|/gr =~ s/\|$//r, '--json');
{"url": "http://x"}
 { "base" : "http://x/a/b" , "url" : "..\/c" }
{"url": "c", "base": null, "more": [1, {"a": "}\""}], "n": -1.5e3}
{"url": "http://x/\u00e9\ud83d\ude00\ud800\"\\"}
{"url": "http://b\u00fccher.de"}
{"base": "http://x/"}
{"url": 1}
{"url": "http://x"} x
{"url": "http://x"
["http://x"]
"http://x"

{}
{"url": "\ud8"}
{"url": "\q"}
IN
0: {"url": "http://x/"}
{"url": "http://x/c"}
{"error": "no-base"}
{"url": "http://x/%C3%A9%F0%9F%98%80%EF%BF%BD%22/"}
{"url": "http://xn--bcher-kva.de/"}
{"error": "json"}
{"error": "json"}
{"error": "json"}
{"error": "json"}
{"error": "json"}
{"error": "json"}
{"error": "json"}
{"error": "json"}
{"error": "json"}
{"error": "json"}
OUT

is(run('--json --profile whatwg', '{"url": "data:\"\\\\\u007f"}'),
   '0: {"url": "data:\"\\\\%7F"}', 'JSON out is escaped');

like(run('--profile nothing', ''),
    qr/^2: .*unknown profile "nothing"; use crawler, /, 'profile');
like(run('--nothing', ''), qr/^2: /, 'option');
like(run('http://x/', ''), qr{^2: .*http://x/: open: No such file}, 'file');

done_testing();


# "exit code: output", lines joined by "|"; 1 (something refused) counts as 0

sub run
{
    my ($options, $in) = @_;

    my ($fh, $name) = tempfile(UNLINK => 1);

    print $fh $in;
    close $fh;

    my $out = `$top/build/urlstore normalize $options < $name 2>&1`;
    my $code = $? >> 8;
    my $refused = $out =~ /^!|"error"/m ? 1 : 0;

    fail("exit code $code of: $out") if $code != 2 && $code != $refused;
    $code = 0 if $code == 1;

    chomp $out;

    return "$code: " . $out =~ s/\n/|/gr;
}
