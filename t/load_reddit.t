#!/usr/bin/perl

# A crawl in small: 50,000 real links and 50,000 generated ones (US_FULL=1: the
# whole list, and none generated) in batches of 1,000 over four connections to
# two workers.

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;
use UrlStore::Load;

my $lines = full() ? corpus('reddit_submissions')
    : [ @{ corpus('reddit_submissions', 50_000) }, @{ generated(50_000) } ];
my $size = full() ? '1g' : '256m';

my $t = UrlStore::Test->new(workers => 2)->run(<<"CONF");
urlstore_zone u $size;
client_max_body_size 8m;
client_body_buffer_size 512k;
server {
    listen 127.0.0.1:%%PORT%%;
    location / { urlstore_api u; }
}
CONF

my $load = UrlStore::Load->new($t, $lines);
my $first = $load->post('/add');

diag(sprintf '%d lines in %.1f s', scalar @$lines, $load->{seconds});

my $book = UrlStore::Load::book($first);
my $urls = $book->{urls};

is(scalar @$first, @$lines, 'an answer for each line');
is_deeply($book->{faults}, [], 'one id a URL, one URL an id, no gap');

my @new = sort { $a <=> $b } map { $_->[0] } grep { $_->[1] eq 'new' } @$first;

is(scalar @new, @$urls, 'each id was new once');
is(scalar(grep { $new[$_] != $_ } 0 .. $#new), 0, 'ids are 0 .. N-1');
cmp_ok(scalar @$urls, '>', 0.9 * @$lines, 'most lines are URLs of their own');


# the canonical URL of a line is what the normalizer makes of it, but for the
# www. of the site's first spelling

{
    my $oracle = normalized($lines);
    my $differ = 0;

    for my $i (0 .. $#$lines) {
        my ($id, $status, $url) = @{ $first->[$i] };

        $differ++ if bare($oracle->[$i]) ne bare(defined $id ? $url
            : "!$url");
    }

    is($differ, 0, 'answers are the canonical URLs of their lines');
}

is(UrlStore::Load::wrong_urls($t, $urls), 0, 'each id gives its URL back');


my $again = $load->post('/seen');

is(count($again, 'unseen'), 0, 'all are seen');
is(changed($first, $again), 0, 'with the same ids');

my $second = $load->post('/add');

is(count($second, 'new'), 0, 'a second load adds nothing');
is(changed($first, $second), 0, 'and answers the same ids');
is($t->get('/stats')->json->{urls}, @$urls, 'the store counts them');


# URLs that were never added: of another list, of which a few may have been
# posted on reddit too, and generated ones of another seed

{
    my $other = full() ? corpus('eot2024_A')
        : [ @{ corpus('eot2024_A', 50_000) }, @{ generated(50_000, 2) } ];
    my $answers = UrlStore::Load->new($t, $other)->post('/seen');
    my ($wrong, $unseen) = (0, 0);

    for my $a (@$answers) {
        next if $a->[1] eq 'invalid';

        my $known = exists $book->{id}{ $a->[2] };

        $wrong++ if $a->[1] ne ($known ? 'seen' : 'unseen');
        $unseen++ if !$known;
    }

    is($wrong, 0, 'never-added URLs are unseen');
    cmp_ok($unseen, '>', 0.99 * @$other, 'as good as all of them');
    is($t->get('/stats')->json->{urls}, @$urls, 'looking up added none');
}


sub count
{
    my ($answers, $status) = @_;

    return scalar grep { $_->[1] eq $status } @$answers;
}


sub changed
{
    my ($one, $two) = @_;

    return scalar grep {
        ($one->[$_][0] // '-') ne ($two->[$_][0] // '-')
        || $one->[$_][2] ne $two->[$_][2]
    } 0 .. $#$one;
}


sub bare
{
    my ($url) = @_;

    return $url =~ s{^(https?://)www\.}{$1}r;
}


# what the command says; lines that it skips as empty do not occur here

sub normalized
{
    my ($lines) = @_;

    my $in = $t->dir . '/lines';

    spew($in, join '', map { "$_\n" } @$lines);

    open my $fh, '-|', "$UrlStore::Test::TOP/build/urlstore normalize < $in"
        or die $!;
    binmode $fh;
    chomp(my @out = <$fh>);

    return \@out;
}
