#!/usr/bin/perl

# Directives: what is refused, with which words; rules, access and variables;
# reload.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $server = <<'CONF';
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 32m marks=visited;

urlstore_rewrite u host=m.news.* ^(https?)://m\. $1://;
urlstore_reject u name=secret /secret/;
urlstore_accept u ^http://deep\.com/;
urlstore_strip_args u utm_* gclid;
urlstore_www_except u x.org;
urlstore_max_depth u 4;
urlstore_max_args u 3;
urlstore_max_repeat u 3;

log_format vars '[$urlstore_id|$urlstore_status|$urlstore_url]';
limit_req_zone $server_port zone=lim:64k rate=1r/m;

map $urlstore_status $known {
    seen     yes;
    default  no;
}

server {
    listen 127.0.0.1:%%PORT%%;
    access_log %%DIR%%/vars.log vars;

    location / { urlstore_api u; }

    location = /denied { deny all; urlstore_add u; }
    location = /limited { limit_req zone=lim; urlstore_seen u; }
    location = /limited429 { limit_req zone=lim; limit_req_status 429;
        urlstore_seen u; }
    location = /secret { auth_basic x; auth_basic_user_file %%DIR%%/users;
        urlstore_seen u; }
    location = /own { error_page 405 = @own; urlstore_add u; }
    location = /own403 { deny all; error_page 403 /sorry; urlstore_add u; }
    location = /sorry { return 200 sorry; }

    location = /only_reads {
        limit_except GET { deny all; }
        urlstore_seen u;
    }

    location = /if {
        if ($arg_brief) { set $y 1; }
        urlstore_seen u;
    }

    location = /gate {
        if ($urlstore_status = seen) { return 409; }
        return 200 "$known $urlstore_id $urlstore_url";
    }
}

server {
    listen 127.0.0.1:%%PORT1%%;
    location / { return 200 other; }
    location /store/ { urlstore_api u; }
}
CONF

my @text = ('Content-Type' => 'text/plain');
my $r;

# --- refused, with words

# a value of an option, and what is allowed

my %zone = (
    profile => [ 'crawler, crawler-clean, whatwg or aggressive', 'x', '',
        'Crawler' ],
    www => [ 'first, keep or strip', 'x', '' ],
    schemes => [ 'keep or first', 'x', '' ],
    sites => [ 'on or off', 'x', '' ],
    sets => [ 'a number up to 65535', 'x', '', '65536', '-1' ],
    sets_create => [ 'put or auto', 'x', '' ],
    huge => [ 'on or off', 'x', '' ],
    erase_within => [ 'a time from 1s to 30d', 'x', '', '0', '999ms', '31d' ],
    mode => [ 'store or lookup', 'x', '' ],
    path => [ 'a directory', '' ],
    sync => [ 'always, off or a time up to 1d such as 1s', 'x', '', '0', '-1s',
        '1x' ],
    snapshot => [ 'off or a size such as 64m', 'x', '', '0', '-1', '1x' ],
    scrub => [ 'off or a time up to 365d such as 1h', 'x', '', '0', '-1s' ],
    marks => [ 'at most 16 different names of at most 32 letters, digits, '
        . '- and _, with commas between them,', 'a,,b', ',', 'a,', '', 'a,a',
        'a.b', 'a' x 33, join ',', 'a' .. 'q' ],
);

my %filter = (
    capacity => [ 'a number of URLs such as 500000, 500k or 50m', 'x', '', '0',
        '-1', 'k', '1g', '1.5m', '9' x 20, '99999999999999m' ],
    error => [ 'a share of 0.000001 to 0.5', 'x', '', '0', '-1', '0.6', '1e-7',
        'nan', 'inf', '0.1x', '0x1p-3', '1%' ],
    path => [ 'a directory', '' ],
    unclean => [ 'refuse or accept', 'x', '' ],
    profile => $zone{profile},
    www => $zone{www},
);

for my $kind ([ 'urlstore_zone', \%zone, '' ],
    [ 'urlstore_filter', \%filter, 'capacity=1 error=0.1' ])
{
    my ($directive, $options, $rest) = @$kind;

    for my $name (sort keys %$options) {
        my ($allowed, @values) = @{ $options->{$name} };

        refused("$directive u 32m " . ($rest =~ s/\b$name=\S+//r)
            . " \"$name=$_\";", qq/invalid value "$_" of parameter "$name" /
            . qq/of $directive "u": $allowed is expected/) for @values;
    }
}

my $u = 'urlstore_zone u 32m; ';
my $size = 'a size such as 512m or 4g is expected';

refused(@$_) for
    [ "$u urlstore_zone u 32m;", 'duplicate urlstore_zone "u"' ],
    [ "$u urlstore_filter u 32m capacity=1 error=.1;",
        'duplicate urlstore_filter "u"' ],
    (map { [ "urlstore_zone u $_;", qq/invalid size "$_" of urlstore_zone /
        . qq/"u": $size/ ] } 'x', '-1', '1x', '32m32', '9' x 20 . 'g'),
    [ 'urlstore_filter u x capacity=1 error=.1;',
        qq/invalid size "x" of urlstore_filter "u": $size/ ],
    [ 'urlstore_zone u 4k;', 'urlstore_zone "u" is too small: 4096 bytes, at '
        . 'least' ],
    [ "urlstore_zone 'u\"' 32m;", 'invalid name "u"" of urlstore_zone: at '
        . 'most 255 letters, digits, - and _' ],
    [ 'urlstore_zone "" 32m;', 'invalid name ""' ],
    [ 'urlstore_zone ' . 'u' x 256 . ' 32m;', 'at most 255 letters' ],
    [ 'urlstore_zone u;', 'invalid number of arguments' ],
    [ 'urlstore_zone u 32m www=keep www=first;',
        'duplicate parameter "www" of urlstore_zone "u"' ],
    [ 'urlstore_zone u 32m foo=1;', 'invalid parameter "foo=1" of '
        . 'urlstore_zone "u": allowed are profile, www, schemes, marks, sets, '
        . 'sets_create, sites, revisit, erase_within, huge, path, sync, '
        . 'follow, replicate, replicas, lease, '
        . 'takeover, stale, base, mode, snapshot, scrub, '
        . 'cluster, shard, node' ],
    [ 'urlstore_filter u 32m capacity=1 error=.1 marks=a;',
        'invalid parameter "marks=a" of urlstore_filter "u": allowed are '
        . 'capacity, error, path, unclean, profile, www' ],
    (map { [ "urlstore_zone u 32m $_;", qq/urlstore_zone "u": its "/
        . s/=.*//r . '" needs a "path"' ] } 'sync=1s', 'snapshot=off',
        'snapshot=1m', 'scrub=1h'),
    (map { [ "urlstore_zone u 32m path=%%DIR%%/d $_;",
        'invalid value "1000d" of parameter "' . s/=.*//r . '"' ] }
        'sync=1000d', 'scrub=1000d', 'lease=1000d', 'takeover=1000d',
        'stale=1000d'),
    [ 'urlstore_zone u 32m mode=lookup;',
        'urlstore_zone "u": mode=lookup needs a "path"' ],
    [ 'urlstore_filter u 32m capacity=1 error=.1 unclean=accept;',
        'urlstore_filter "u": its "unclean" needs a "path"' ],
    [ 'urlstore_zone u 32m path=%%DIR%%/d; urlstore_zone v 32m '
        . 'path=%%DIR%%/d/;', '/d/ of "v" is used by "u" already' ],
    [ 'urlstore_zone u 32m path=%%DIR%%/d; urlstore_filter v 32m capacity=9 '
        . 'error=0.1 path=%%DIR%%/d;', '/d of "v" is used by "u" already' ],
    [ '', 'no urlstore_zone "u" is declared' ],

    [ "urlstore_reject u x; $u", 'must be declared above' ],
    [ "$u urlstore_reject u \"a(b\";",
        '"urlstore_reject" of zone "u": missing closing '
        . 'parenthesis at offset 3 in "a(b"' ],
    [ "$u urlstore_accept u \"[\";", 'at offset 1 in "["' ],
    [ "$u urlstore_rewrite u \"x)\" y;", 'at offset 1' ],
    [ "$u urlstore_rewrite u foo=1 x y;",
        'invalid parameter "foo=1" of urlstore_rewrite "u": allowed are host, '
        . 'name' ],
    [ "$u urlstore_rewrite u host= x y;",
        'invalid value "" of parameter "host" of urlstore_rewrite "u"' ],
    (map { [ "$u urlstore_reject u name=$_ x;", qq(invalid value "$_)
        . '" of parameter "name" of urlstore_reject "u": up to 64 letters' ] }
        '', 'a/b', '$x', 'n' x 65),
    [ "$u urlstore_accept u host=a x;", 'allowed are name' ],
    [ "$u urlstore_rewrite u (x) \$2;", 'no group "2"' ],
    (map { [ "$u urlstore_www_except u $_;", qq/invalid value "/ . tr/"//dr
        . '" of "urlstore_www_except": a host is expected' ] }
        '*.x.org', '""', 'x.org/', 'a?b'),
    [ "$u urlstore_strip_args u \"\";", 'invalid value "" of '
        . '"urlstore_strip_args": the name of an argument or a glob is '
        . 'expected' ],
    (map { my $limit = $_; map { [ "$u urlstore_$limit u $_;",
        qq/invalid value "$_" of "urlstore_$limit": 0 to 8192, where 0 is /
        . 'no limit, is expected' ] } 'x', '-1', '8193', '9' x 20 }
        qw(max_depth max_args max_repeat)),
    (map { [ "$u urlstore_$_ u 1; urlstore_$_ u 2;",
        qq/duplicate "urlstore_$_" of urlstore_zone "u"/ ] }
        qw(max_depth max_args max_repeat)),

    [ "$u urlstore_max_batch 0;", 'equal to or greater' ],
    [ "$u urlstore_max_body x;", 'invalid value' ],
    [ "$u urlstore_max_body 0;",
        '"urlstore_max_body" directive must be at least 1' ],
    [ "$u urlstore_max_reply 0;",
        '"urlstore_max_reply" directive must be at least 1' ],
    [ "$u urlstore_max_age x;", 'invalid value' ],
    [ "$u urlstore_hot 63k;", '"urlstore_hot" directive must be 0, or at '
        . 'least 64k' ],
    [ "$u urlstore_hot off;", 'invalid value' ],
    [ "$u urlstore_hot 1m; urlstore_hot 0;", 'is duplicate' ],
    [ "$u urlstore_max_url 9000;", 'between 1 and 8192' ],
    [ "$u urlstore_max_url 0;", 'between 1 and 8192' ],

    # a zone in a directive of another kind

    [ 'urlstore_filter u 32m capacity=1 error=.1; urlstore_reject u "(";',
        '"urlstore_reject" of zone "u": missing closing' ],
    [ "$u urlstore_quota \$host 1/s zone=u;", 'different use' ];

# the size that a message names is enough

for my $zone ('urlstore_zone u %s;', 'urlstore_zone u %s marks=a,b sites=on;',
    'urlstore_zone u %s path=%%%%DIR%%%%/size;',
    'urlstore_filter u %s capacity=1m error=0.01;',
    'urlstore_filter u %s capacity=7 error=0.5;',
    'urlstore_filter u %s capacity=3m error=0.000001;',
    'urlstore_filter u %s capacity=1m error=0.01 path=%%%%DIR%%%%/size;')
{
    my ($rc, $out) = $t->check(sprintf("$zone\n", 4096) . $server);
    my ($least) = $out =~ /at least (\d+) are needed/;

    is($rc, 1, "too small: $zone");
    ($rc, $out) = $t->check(sprintf("$zone\n", $least // 'x') . $server);
    is($rc, 0, "  $least is enough") or diag($out);
    ($rc, $out) = $t->check(sprintf("$zone\n", int($least * 0.95)) . $server);
    is($rc, 1, '  a twentieth less is not') if $zone =~ /_filter.*m /;
}

for ([ 'location ~ x { urlstore_api u; }', 'needs a prefix location' ],
    [ 'location @x { urlstore_api u; }', 'needs a prefix location' ],
    [ 'location = /x { urlstore_api u; }', 'needs a prefix location' ],
    [ 'location /x { urlstore_add u; urlstore_seen u; }', 'is duplicate' ],
    [ 'location /x { urlstore_add u; urlstore_cluster_admin c; }',
        'is duplicate' ],
    [ 'location /x { urlstore_cluster_admin c; urlstore_add u; }',
        'is duplicate' ])
{
    my ($conf, $words) = @$_;
    my ($rc, $out) = $t->check("urlstore_zone u 32m;\n"
        . "urlstore_cluster c %%DIR%%/none;\nserver {\n"
        . "listen 127.0.0.1:%%PORT%%;\n$conf\n}\n");

    isnt($rc, 0, "refused: $conf");
    like($out, qr/\[emerg\].*\Q$words\E/, '  with the words');
}

for ('urlstore_zone u 32m path=%%DIR%%/d; urlstore_zone v 32m '
    . 'path=%%DIR%%/dd;', 'urlstore_zone u 32m; urlstore_www_except u X.org '
    . 'www.bÃ¼cher.de;'
    . ' urlstore_max_age 0;')
{
    my ($rc, $out) = $t->check("$_\n$server");
    is($rc, 0, "taken: $_") or diag($out);
}

is(($t->check("$server urlstore_zone u 32m huge=on sites=on profile=whatwg"
    . " www=keep schemes=first;"))[0], 0, 'a zone may be declared below');

# --- rules

is($t->post('/add', join("\n", 'http://m.news.com/a', 'http://m.else.com/a',
    'http://a.com/secret/x', 'http://deep.com/secret/1/2/3/4/5/6',
    'http://a.com/1/2/3/4/5/6', 'http://a.com/?a&b&c&d',
    'http://a.com/x/x/x/x', 'http://a.com/?utm_a=1&b=2&gclid=3'), @text)->{body}
    =~ s/^(\d+|-)/*/mgr,
    "*\tnew\thttp://news.com/a\n*\tnew\thttp://m.else.com/a\n"
    . "*\trejected\trule:secret\n"
    . "*\trejected\tdepth\n*\trejected\tdepth\n*\trejected\targs\n"
    . "*\trejected\trepeat\n*\tnew\thttp://a.com/?b=2\n", 'rules and limits');
is($t->get('/seen?url=http://a.com/secret/x')->json->{reason},
    'rule:secret', 'a single one names the rule');
{
    my $long = 'n' x 64;
    my $odd = UrlStore::Test->new->run(<<"CONF");
urlstore_zone u 32m;
urlstore_reject u "tab\\t|tab";
urlstore_reject u name=$long long;
urlstore_reject u \xff|latin;
$server
CONF

    $r = $odd->post('/add', join("\n", map { "http://a.com/$_" } 'tab', 'long',
        'latin'), @text, Accept => 'application/json');
    is_deeply([ map { $_->{reason} } @{ $r->json->{results} } ],
        [ 'rule:1', "rule:$long", 'rule:3' ],
        'a rule is reported by its name or number, not by its expression');
}

is($t->post('/add', "http://x.org/\nhttp://www.x.org/\n", @text)->{body}
    =~ s/^\d+//mgr, "\tnew\thttp://x.org/\n\tnew\thttp://www.x.org/\n",
    'a host that is not merged');

# --- nginx's own errors, in our locations

for my $path ('/seen', '/only_reads') {
    $r = $t->get("$path?url=http://a.com/" . 'x' x 40_000);
    is("$r->{status} $r->{headers}{'content-type'}",
        '414 application/problem+json', "$path: a request line too long");
    is($r->{headers}{'cache-control'}, 'no-store', '  for no cache');
    like($r->json->{detail}, qr/large_client_header_buffers.*POST/,
        '  says what to do');
}

for ([ '/other', 'text/html' ], [ '/stor', 'text/html' ],
    [ '/store/seen', 'application/problem+json' ])
{
    my ($path, $type) = @$_;

    $r = $t->client(1)->request('GET', "$path?url=" . 'x' x 40_000);
    is("$r->{status} $r->{headers}{'content-type'}", "414 $type",
        "$path beside other locations");
}

$r = $t->post('/denied', "x\n");
is($r->{status}, 403, 'denied');
is($r->{headers}{'content-type'}, 'application/problem+json', 'a problem');
is_deeply($r->json, { type => 'about:blank', title => 'Forbidden',
    status => 403 }, 'of the right kind');
is($t->request('HEAD', '/denied')->{headers}{'content-type'},
    'application/problem+json', 'HEAD');
spew($t->dir . '/users', "a:{PLAIN}b\n");
$r = $t->get('/secret?url=http://a.com/');
is($r->{status}, 401, 'not authorized');
is($r->json->{title}, 'Unauthorized', 'a problem');
ok($r->{headers}{'www-authenticate'}, 'that keeps its header');
is($t->get('/secret?url=http://a.com/', Authorization => 'Basic YTpi')
    ->{status}, 200, 'authorized');
$t->get('/limited?url=http://a.com/');
$r = $t->get('/limited?url=http://a.com/');
is("$r->{status} " . $r->json->{status}, '503 503', 'limit_req');
$r = $t->get('/limited429?url=http://a.com/');
is("$r->{status} " . $r->json->{status} . " $r->{headers}{'retry-after'}",
    '429 429 1', 'limit_req_status 429 says when to come again');
is($t->post('/own403', 'x')->{body}, 'sorry', 'error_page of the operator');
is($t->post('/only_reads', "http://a.com/\n", @text)->{status}, 403,
    'limit_except');
is($t->get('/only_reads?url=http://a.com/')->{status}, 200, 'and the rest');
is($t->get('/if?brief=1&url=http://a.com/?b=2')->json->{status}, 'seen',
    'an if block');

# --- client_max_body_size is nginx's, and what it says holds

{
    my $t = UrlStore::Test->new(workers => 1)->run(<<'CONF');
urlstore_zone u 32m;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
    location /1m/ { urlstore_api u; client_max_body_size 1m; }
    location /m1/ { client_max_body_size 1m; urlstore_api u; }
    location /2m/ { urlstore_api u; client_max_body_size 2m; }
    location /0/ { urlstore_api u; client_max_body_size 0;
        urlstore_max_body 3m; }
}
server {
    listen 127.0.0.1:%%PORT1%%;
    client_max_body_size 1m;
    location / { urlstore_api u; }
}
CONF

    my $body = ('http://a.example/' . 'x' x 1000 . "\n") x 1200;

    for ([ '/' => 413 ], [ '/1m/' => 413 ], [ '/m1/' => 413 ],
        [ '/2m/' => 200 ], [ '/0/' => 200 ], [ '/', 413, 1 ])
    {
        my ($at, $status, $port) = @$_;

        is($t->client($port)->request('POST', "${at}add", $body, @text)
            ->{status}, $status, "1.2 MB at $at" . ($port // ''));
    }

    is($t->client->request('POST', '/0/add', $body x 3, @text)->{status}, 413,
        'the limit of urlstore_max_body');
}

# --- variables

$t->get('/seen?url=http://news.com/a');
$t->get('/seen?url=http://none.com/');
$t->get('/seen?url=ftp:x');
$t->get('/url/0');
$t->get('/url/999');
$t->get('/url/' . '9' x 20);
$t->get('/prefix?url=http://news.com/a/b');
$t->get('/prefix?url=http://none.com/a/b');
$t->get('/health');

ok(wait_until(5, sub { slurp($t->dir . '/vars.log')
    =~ /\[0\|seen\|http:..news.com.a\]\n
        \[-\|unseen\|http:..none.com.\]\n
        \[-\|invalid\|-\]\n
        \[0\|seen\|http:..news.com.a\]\n
        \[999\|unknown\|-\]\n
        \[-\|unknown\|-\]\n
        \[0\|seen\|http:..news.com.a\]\n
        \[-\|unseen\|-\]\n
        \[-\|-\|-\]\n/x }), 'in logs') or diag(slurp($t->dir . '/vars.log'));

is($t->get('/gate?url=http://m.news.com/a')->{status}, 409, 'in if');
is($t->get('/gate?url=http://news.com/new')->{body},
    'no  http://news.com/new', 'in map and texts');
is($t->get('/gate?url=../new&base=http://news.com/a/')->{body},
    'no  http://news.com/new', 'with a base');
is($t->get('/gate')->{body}, 'no  ', 'without a URL');

# --- the log of refused input

$t->post('/seen', "x\x01\"\xff\\y z\n", @text);
like($t->error_log, qr/\[info\].*urlstore[ ]zone=u[ ]endpoint=seen[ ]item=0
    [ ]reason=no-base[ ]length=8[ ]input="x\\x01\\x22\\xff\\x5cy\\x20z"/x,
    'refused input is logged, escaped');

# --- reload

my $conf = slurp($t->dir . '/nginx.conf');

ok($t->reload, 'reload');
is($t->get('/url/0')->{body}, "http://news.com/a\n", 'keeps the store');
my $epoch = $t->get('/health')->json->{epoch};

for ([ '32m', '64m', qr/its size cannot change from 33554432 to 67108864/ ],
    [ 'marks=visited', 'marks=other', qr/its "marks" cannot change/ ],
    [ 'marks=visited', 'www=keep marks=visited', qr/its "www" cannot change/ ],
    [ 'marks=visited', 'profile=whatwg marks=visited',
        qr/its "profile" cannot change/ ],
    [ 'marks=visited', 'schemes=first marks=visited',
        qr/its "schemes" cannot change/ ],
    [ 'marks=visited', 'sites=on marks=visited',
        qr/its "sites" cannot change/ ])
{
    my ($old, $new, $words) = @$_;

    $t->allow(qr/cannot change/);

    (my $changed = $conf) =~ s/\Q$old\E/$new/;
    spew($t->dir . '/nginx.conf', $changed);

    is(($t->check)[0], 0, "nginx -t knows of no running store: $new");

    my $seen = () = $t->error_log =~ /$words/g;
    $t->signal('HUP');
    ok(wait_until(5, sub { my $n = () = $t->error_log =~ /$words/g;
        $n > $seen }), 'a reload is refused');
    is($t->post('/add', "http://news.com/a\n", @text)->{body},
        "0\tseen\thttp://news.com/a\n", 'and the store goes on');
}

spew($t->dir . '/nginx.conf', $conf =~ s/urlstore_max_depth u 4;//r);
ok($t->reload, 'a rule that changed is taken');
is($t->post('/add', "http://a.com/1/2/3/4/5/6\n", @text)->{body}
    =~ s/^\d+//r, "\tnew\thttp://a.com/1/2/3/4/5/6\n", 'and holds');
is($t->get('/health')->json->{epoch}, $epoch, 'the epoch stays');


sub refused
{
    my ($conf, $words) = @_;
    my ($rc, $out) = $t->check("$conf\n$server");

    isnt($rc, 0, "refused: $conf");
    like($out, qr/\[emerg\].*\Q$words\E/, '  with the words');
}
