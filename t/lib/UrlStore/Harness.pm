package UrlStore::Harness;

# What `make test` runs prove with: at the end it reports how many tests were
# skipped, and why.  A test that is skipped has not passed.
#
#     perl -It/lib -S prove --harness UrlStore::Harness ...
#
# Core Perl only.

use strict;
use warnings;

use base 'TAP::Harness';


sub new
{
    my ($class, @args) = @_;

    my $self = $class->SUPER::new(@args);
    my $skipped = $self->{us_skipped} = [];     # file, number, reason

    $self->callback(made_parser => sub {
        my ($parser, $job) = @_;
        my $file = $job->[0];

        $parser->callback(test => sub {
            my ($test) = @_;

            push @$skipped, [ $file, 1, $test->explanation ]
                if $test->has_skip;
        });

        $parser->callback(plan => sub {
            my ($plan) = @_;

            push @$skipped, [ $file, 'all', $plan->explanation ]
                if $plan->has_skip;
        });
    });

    return $self;
}


sub summary
{
    my ($self, @args) = @_;
    my $skipped = $self->{us_skipped};

    printf "skipped: %d\n", scalar @$skipped;
    printf "  %s, %s: %s\n", @$_ for @$skipped;

    return $self->SUPER::summary(@args);
}


1;
