#!/usr/bin/perl

# docs/reference.md has every directive with its context, every option of a
# zone and every variable; and nothing that the module does not have.

use strict;
use warnings;

use Test::More;

my $doc = slurp('docs/reference.md');


sub slurp
{
    my ($path) = @_;

    open my $fh, '<', $path or die "$path: $!";
    local $/;

    return scalar <$fh>;
}


# what the module has: directive => context

my $module = join '', map { slurp($_) } glob 'src/ngx_*.c';
my %place = (MAIN => 'http', SRV => 'server', LOC => 'location');
my %has;

while ($module =~ /ngx_string\("(urlstore_\w+)"\),
    \s+((?:NGX_HTTP_\w+_CONF\|)+)/gx)
{
    my ($name, $flags) = ($1, $2);

    $has{$name} = join ', ',
        map { $place{$_} } $flags =~ /NGX_HTTP_(\w+)_CONF/g;
}

$has{"urlstore_$_"} = 'location'
    for $module =~ /ngx_http_urlstore_endpoint_command\("(\w+)"/g;

cmp_ok(keys %has, '>', 25, 'the directives of the module');

my %says;

for my $section (split /^(?=##)/m, $doc) {
    my ($names) = $section =~ /^### (.*)/ or next;
    my ($context) = $section =~ /^\| Context \| (.*) \|$/m;
    my ($syntax) = $section =~ /^\| Syntax \| `(\w+) /m;

    like($names, qr/^\Q$syntax\E\b/, "the syntax of $syntax");
    $says{$_} = $context for split /, /, $names;
}

is_deeply(\%says, \%has, 'each directive, and its context');

my @options = slurp('src/http/ngx_http_urlstore_options.c')
    =~ /ngx_string\("(\w+)"\), ngx_http_urlstore_opt_/g;
my ($zone) = $doc =~ /^### urlstore_zone\n(.*?)^###/ms;

is(join(' ', sort $zone =~ /^\| `(\w+)=/mg), join(' ', sort @options),
    'each option of a zone');

my @variables = slurp('src/http/ngx_http_urlstore_variables.c')
    =~ /ngx_string\("(urlstore_\w+)"\)/g;

is(join(' ', sort $doc =~ /^\| `\$(\w+)`/mg), join(' ', sort @variables),
    'each variable');

# defaults, as the module merges them

my %unit = (m => 1 << 20, s => 1, '' => 1);

for my $limit (qw(max_url max_batch max_body max_reply max_age)) {
    my ($value) = $module
        =~ /merge_\w+_value\(conf->$limit,\s*prev->$limit,\s*([^)]+)\)/;
    my ($said) = $doc =~ /Default \| `urlstore_$limit (\w+);`/;
    my ($n, $unit) = $said =~ /^(\d+)(\w?)$/;

    $value =~ s/US_URL_MAX/8192/;
    is($n * $unit{$unit}, eval($value), "urlstore_$limit by default");
}

done_testing();
