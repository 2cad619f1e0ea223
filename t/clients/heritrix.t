#!/usr/bin/perl

# The filter for Heritrix: the calls of its frontier, alone; crawl.t has a
# crawl.  The interface is that of Heritrix 5ada2a78 (3.15.1-SNAPSHOT, July
# 2026); clients/java/test/heritrix declares as much of it as the filter meets.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Fake;
use UrlStore::Test;

my $java = "$UrlStore::Test::TOP/clients/java";
my $t = UrlStore::Test->new->run(<<'CONF');
urlstore_zone u 16m marks=visited sets=8;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

# what comes in between

my $fake = UrlStore::Fake->new(sub {
    my ($name, $n, $target) = @_;

    return \&erased if $name eq 'erased' && $target =~ m{^/add};
    return { forward => $t->port, drop => 'answered', keyless => 1 }
        if $name =~ /^(?:lost|unsure)$/ && $n == 0;
    return { status => 403, problem => { status => 403, title => 'No' } }
        if $name eq 'refused' && $n < 2 || $name eq 'unsure' && $n == 1
            || $name eq 'batches' && !-e "$t->{dir}/go";
    return { forward => $t->port };
});

sub erased
{
    my ($body) = @_;

    my $last = $body =~ m{/last"} && !-e "$t->{dir}/erased";

    spew("$t->{dir}/refused", '') if $last;

    return $last || $body =~ m{/first"} && !-e "$t->{dir}/full"
        ? { status => 403, problem => { status => 403, title => 'No' } }
        : { forward => $t->port };
}

is(system("javac --release 11 -Xlint:all -Werror -d $t->{dir}/classes"
    . " -sourcepath $java:$java/heritrix:$java/test/heritrix"
    . " $java/test/heritrix/Calls.java"), 0, 'it is compiled');

my $out = `java -cp $t->{dir}/classes Calls \\
    http://127.0.0.1:@{[ $fake->port ]}/h $t->{dir} 2>$t->{dir}/log`;

is($?, 0, '... and runs') or diag(slurp("$t->{dir}/log"));
is($out =~ s/(flush: 0\n){50}/flush: 0\n/r, <<'END', 'what is received');
none: 0
waits: 3 none
new: http://p.test/a http://p.test/b
forced: http://p.test/a
forced: http://p.test/f
noted: none
at once: http://p.test/now
not empty: 1, 0
forgotten: http://p.test/a
no http: dns:p.test ftp://p.test/
no http: dns:p.test
checkpoint: http://p.test/checkpoint
checkpoint: http://p.test/later
counts: 11 of 15
profile: 18
flush: 0
hurry: true
waits: WAITING true 0
all: 12500
lost: http://lost.test/1 http://lost.test/2
lost: http://unsure.test/1 http://unsure.test/2
refused: 1 none
then: http://r.test/1
erased: http://e.test/first http://e.test/last
target: http://www.m.test/
done: http://m.test/other
done: http://m.test/ http://m.test/other
closed: none
stored: seen
new to the set: http://s.test/1 http://s.test/2 http://s.test/3
forgotten: http://s.test/2
no queues yet: none
left: http://s.test/3 http://s.test/2 http://s.test/4
another set: http://s.test/1
END

is_deeply([sizes('hurry')], [(1) x 50], 'one that is in a hurry');
is(scalar grep({ $_ > 1000 } sizes('batches')), 0, 'batches of 1,000');

# each URL comes twice, and one may be in two batches

cmp_ok(scalar(grep { $_ >= 999 } sizes('batches')), '>=', 10, '... full');
is(join(' ', map { "$_->{method} $_->{target}" } $fake->requests('h/refused')),
    join(' ', ('POST /add') x 3, 'POST /mark/visited'),
    'a page is marked after its links are stored, and not if it has failed');


# how many URLs each request had

sub sizes
{
    my ($name) = @_;

    return map { scalar @{ $_->{json}{urls} } }
        grep { $_->{target} eq '/add' } $fake->requests("h/$name");
}
