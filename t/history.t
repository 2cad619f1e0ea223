#!/usr/bin/perl

# The checker of recorded answers (UrlStore::History): histories that it must
# accept, and one for each fault that it must find.

use strict;
use warnings;

use lib 't/lib';
use File::Temp qw(tempdir);
use Test::More;
use UrlStore::History;

my $file = tempdir(CLEANUP => 1) . '/record';


# lines of the record, and what there is in the end: what check() returns

sub judge
{
    my ($lines, @urls) = @_;

    open my $out, '>', $file or die $!;
    print $out map { "$_\n" } @$lines;
    close $out;

    return UrlStore::History->new($file)->check(@urls);
}


my @plain = ('1 2 add u new 0', '3 4 add v new 1', '5 6 seen u seen 0',
    '5 6 url u found 0', '1 2 url - unknown 1', '1 3 seen v unseen -');

is(judge(\@plain, 'u', 'v'), '', 'a plain history');
is(judge(['1 - add u - -', '3 4 add u seen 0'], 'u'), '', 'a lost reply');
is(judge(['1 - add u - -', '3 4 seen u unseen -'], 'u'), '',
    'an add without a reply is done later');
is(judge(['1 - add u - -'], 'u'), '', '  or by nobody noticed');
is(judge(['1 - slow u - -', '1 3 half v 503 -'], 'v', 'u'), '',
    '  nor if its body came slowly');
is(judge(['1 - add u - -', '2 3 seen u 503 -']), '', '  or not at all');
is(judge(['1 9 add u new 0', '2 3 seen u unseen -', '4 5 seen u seen 0',
    '1 6 seen u unseen -'], 'u'), '', 'requests at the same time');

my @found = (
    [ 'an answer is lost', qr/the id 0 was u and is nothing/,
        ['1 2 add u new 0'] ],
    [ 'an id has another URL', qr/the id 0 was u and is v/,
        ['1 2 add u new 0', '1 - add v - -'], 'v' ],
    [ 'an id is given twice', qr/the id 0 has the URLs u and v/,
        ['1 2 add u new 0', '3 4 add v new 0'], 'u' ],
    [ 'a URL has two ids', qr/u has the ids 0 and 1/,
        ['1 2 add u new 0', '3 4 seen u seen 1'], 'u', 'v' ],
    [ 'two ids in the end', qr/u has two ids in the end/,
        ['1 2 add u new 0'], 'u', 'u' ],
    [ 'new twice', qr/u is new twice/,
        ['1 2 add u new 0', '3 4 add u new 0'], 'u' ],
    [ 'a wrong denial', qr/u \(id 0\) is denied 1\.000 s after/,
        ['1 2 add u new 0', '3 4 seen u unseen -'], 'u' ],
    [ 'a wrong denial of an id', qr/u \(id 0\) is denied 1\.000 s after/,
        ['1 2 add u new 0', '3 4 url - unknown 0'], 'u' ],
    [ 'a URL that nobody has added', qr/v is in the store, and nobody/,
        ['1 2 add u new 0'], 'u', 'v' ],
    [ 'found before it was added', qr/the id 0 was answered 2\.000 s before/,
        ['4 5 add u seen 0', '1 2 seen u seen 0'], 'u' ],
    [ 'ids out of order', qr/the id 1 was answered 1\.000 s before an id below/,
        ['3 4 add u new 0', '1 2 add v new 1'], 'u', 'v' ],
    [ 'a denial out of order', qr/the id 1 was answered 1\.000 s before/,
        ['1 - add u - -', '1 2 add v new 1', '3 4 seen u unseen -'],
        'u', 'v' ],
);

for (@found) {
    my ($what, $why, @history) = @$_;

    like(judge(@history), $why, $what);
}

done_testing();
