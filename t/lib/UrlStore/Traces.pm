package UrlStore::Traces;

# What is left of erased URLs, and where; see t/traces/traces.c.

use strict;
use warnings;

use base 'Exporter';

use File::Temp qw(tempdir);
use Test::More;
use UrlStore::Corpora;
use UrlStore::Test ();

use constant TRACES_SITE => 'letters.curiosity-society.example';

our @EXPORT = qw(TRACES_SITE traces_fill traces_of traces traces_found
    traces_none);

my $program = "$UrlStore::Test::TOP/build/traces/traces";
my $dir = tempdir(CLEANUP => 1);


# adds real URLs and a site to the zone at /, which learns a model from them:
# all URLs by their ids, and those of the site

sub traces_fill
{
    my ($t) = @_;

    my $lines = corpus('reddit_submissions', 50000);
    my @site = map {
        'http://' . TRACES_SITE . "/dispatches/from-the-lighthouse/$_.html"
    } 1 .. 3000;
    my @all = map {
        $_ % 16 ? $lines->[$_] : ($lines->[$_], $site[$_ / 16] // ())
    } 0 .. $#$lines;

    while (my @some = splice @all, 0, 500) {
        $t->post('/add?brief=1', join("\n", @some),
            'Content-Type' => 'text/plain');
    }

    ok(UrlStore::Test::wait_until(15, sub {
        $t->get('/stats')->json->{parts}{models}
    }), 'a model was learnt');

    my @urls = map { (split /\t/)[1] }
        split /\n/, $t->get('/urls?limit=100000')->{body};

    cmp_ok(@urls, '>', 25_000, 'real URLs');

    return (\@urls, \@site);
}


# texts of a program or library

sub _words
{
    my ($file) = @_;
    my $text = UrlStore::Test::slurp($file, 1);

    return $text =~ /^\x7fELF/ ? $text =~ /[ -~]{12,}/g : ();
}


sub _file
{
    my ($name, @lines) = @_;

    open my $f, '>', "$dir/$name" or die $!;
    print $f map { "$_\n" } @lines;
    close $f or die $!;
}


# which URLs are looked for, and those that stay; the texts of the programs and
# libraries of a process may be in URLs as well (what an emulator runs is not
# executable for the kernel; its own file may be outside of this root)

sub traces_of
{
    my ($gone, $kept, $pid) = @_;

    open my $maps, '<', "/proc/$pid/maps" or die $!;
    my %mapped = map { m{ r..p [^/]*(/\S+)$} ? ($1 => 1) : () } <$maps>;

    _file(gone => @$gone);
    _file(kept => @$kept, map { _words($_) } sort keys %mapped);
}


# whether a file, a directory or pid:N has a piece of one, and the report

sub traces
{
    my $text = `$program $dir/gone $dir/kept @_`;
    my $status = $? >> 8;

    die "$program: $status" if $status > 1;

    return wantarray ? ($status, $text) : $status;
}


# the same as one test

sub traces_found { return _traces(1, @_) }
sub traces_none { return _traces(0, @_) }


sub _traces
{
    my ($want, $target, $what) = @_;

    SKIP: {
        skip 'the sanitizer, or valgrind, has memory of its own', 1
            if $target =~ /^pid:/ && ($ENV{US_ASAN} || $ENV{US_VALGRIND});
        skip 'an emulator keeps the memory that a heap has given back', 1
            if $target =~ /^pid:/ && !$want && UrlStore::Test::emulated();

        my ($found, $text) = traces($target);

        is($found, $want, $what);
        diag($text) if $found != $want;
    }
}


1;
