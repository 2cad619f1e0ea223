#!/usr/bin/perl

# Names are frozen: t/data/names.txt has each name that a user writes or reads,
# of tables of the source, openapi.yaml, the command and the clients.  A name
# that is gone or has changed fails, and so does one that is not there yet.
#
#     perl t/00-names.t print      the names as they are, for that file

use strict;
use warnings;

use Test::More;

my %is;

directives();
figures();
interface(slurp('front/openapi.yaml'));
command('build/urlstore');

my $row = qr/^    \{ ngx_string\("(?<name>[\w-]+)"\)/;
my $end = qr/^\}/;

names('option', 'src/ngx_*.c src/http/*.c', $row,
    qr/option_t  ngx_http_urlstore_(?<type>\w+)\[\]|$end/);
words('src/http/ngx_http_urlstore.h', glob 'src/http/*_options.c src/ngx_*.c');
names('variable', 'src/http/ngx_http_urlstore_variables.c', $row,
    qr/variable_t  ngx_http_urlstore_(?<type>vars)\[\]|$end/);
names('problem', 'src/api/us_problem.c', qr/\{ \d+, "(?<name>\d+ .*)"/,
    qr/^us_problem_(?<type>line)|$end/);
names('reason', 'src/api/us_problem.c', qr/us_put\(p, "(?<name>\w+)"\)/,
    qr/^us_(?<type>refusal)_word|$end/);
names('reason', 'src/url/us_normalize.c', qr/"(?<name>[\w-]+)"/,
    qr/^us_(?<type>verdict)_name|$end/);
names('metric', 'src/api/us_figures.c',
    qr/us_(?:metric|sample\w*)\(p,(?: f,)? "(?<name>\w+)"/,
    qr/^us_(?<type>metric)s?_\w+\(|$end/);

my $python = '{aio,crawl*,errors,scrapy,sync,values}.py';

names('python', "clients/python/urlstore/$python",
    qr/^ +(?:async )?(?:def )?(?<name>[a-z]\w*)(?:\(|: )/,
    qr/^class (?:(?<type>[A-Z]\w*)|\w)/);
names('node', 'clients/node/*.d.ts',
    qr/^ +(?:readonly |static )*(?<name>[a-z]\w*)\??[:(<]/,
    qr/^export (?:default |declare )*\w+ (?<type>\w+)/);
names('go', 'clients/go/{cache,exchange,urlstore}.go',
    qr/^(?:func \(\w+ \*?(?<of>[A-Z]\w*)\) |\t)(?<name>[A-Z]\w*)(?=\(| +\S)/,
    qr/^(?:type|func) (?:(?<type>[A-Z]\w*)|\w)/);
names('java', 'clients/java/*.java clients/java/heritrix/*.java',
    qr/^ +public [^=(]*?(?<name>\w+)(?:\(| =|;)/,
    qr/^ *(?:public |static |final |private )*class (?<type>\w+)/);

if (@ARGV) {
    print map { "$_\n" } sort keys %is;
    exit;
}

my @lines = grep { !/^#/ } split /\n/, slurp('t/data/names.txt');
my %was = map { $_ => 1 } @lines;

is(join("\n", @lines), join("\n", sort keys %was), 'sorted, each once');
is(join("\n", grep { !$is{$_} } sort keys %was), '', 'no name is gone');
is(join("\n", grep { !$was{$_} } sort keys %is), '',
    'each new name is in t/data/names.txt');

for my $kind (qw(answer answers argument command directive endpoint exit field
    go java metric node option problem python reason stat variable word))
{
    cmp_ok(scalar(grep { /^$kind / } keys %is), '>', 4, "names of kind $kind");
}

done_testing();


sub name { $is{join ' ', @_} = 1 }


sub slurp
{
    my ($path) = @_;

    open my $fh, '<', $path or die "$path: $!";
    local $/;

    return scalar <$fh>;
}


# names by line, of the type in which they are: its first line is less indented

sub names
{
    my ($kind, $files, $name, $type) = @_;

    for my $path (glob $files) {
        my @in;

        for (split /\n/, slurp($path)) {
            my $at = /^(\s*)/ ? length $1 : 0;

            if (/$type/) {
                splice @in, $at;
                $in[$at] = $+{type} or next;
                name($kind, $in[$at])
                    if /^\s*(?:export|type|func|class|public)/;

                next;
            }

            while (/$name/g) {
                my ($is, $of) = @+{qw(name of)};
                ($of) = grep { defined } $of, reverse @in[0 .. $at - 1];
                name($kind, $of, $is) if $of;
            }
        }
    }
}


# of options: the sixth field of their rows

sub words
{
    my $source = join '', map { slurp($_) } @_;
    my %macro = $source =~ /^#define (NGX_HTTP_URLSTORE_\w+) +(".*")$/mg;

    while ($source =~ /\{ ngx_string\("(\w+)"\), \w+_opt_(.*?) \}/gs) {
        my ($option, $row) = ($1, $2);
        my $words = (split /,\s+/, $row =~ s/\(.*?\)//r)[4];

        ($words) = ($macro{$words} // $words) =~ /^"(.*)"/ or next;
        name('word', $option, $_) for split / /, $words;
    }
}


sub directives
{
    my %place = (MAIN => 'http', SRV => 'server', LOC => 'location');

    for my $source (map { slurp($_) } glob 'src/ngx_*.c') {
        while ($source =~ /ngx_string\("(urlstore_\w+)"\),
            \s+((?:NGX_HTTP_\w+_CONF\|)+)/gx)
        {
            my ($name, $flags) = ($1, $2);
            name('directive', $name, map { $place{$_} }
                $flags =~ /NGX_HTTP_(\w+)_CONF/g);
        }

        name('directive', "urlstore_$_", 'location')
            for $source =~ /ngx_http_urlstore_endpoint_command\("(\w+)"/g;
    }
}


sub figures
{
    my $source = slurp('src/api/us_figures.c');

    while ($source =~ /\{\ \w[\w|]*,\ \w+,\ \w+\([^)]+\),
        \s*(?:NULL|"(\w+)"),\s*(?:NULL|"(\w+)")/gx)
    {
        my ($stat, $metric) = ($1, $2);
        name('stat', $stat) if $stat;
        name('metric', "urlstore_$metric") if $metric;
    }
}


# the table of endpoints by their keys, what is below by its path

sub interface
{
    my ($text) = @_;
    my @at;                                 # [indent, key]

    for (split /\n/, $text) {
        m{^( *(?:- )?)["']?(/[^:]*|[\w.\$-]+)["']?: *(.*?) *$} or next;
        my ($indent, $key, $value) = (length $1, $2, $3);

        pop @at while @at && $at[-1][0] >= $indent;
        push @at, [$indent, $key];

        my ($root, @k) = map { $_->[1] } @at;
        my $of = join ' ', grep { !/^(?:parameters|schemas?)$/ }
            @k[0 .. $#k - 1];

        next if $root !~ /^(?:paths|components)$/;

        name('endpoint', @k) if @k == 2 && $key =~ /^(?:get|post|put|delete)$/;
        name('answers', @k[0, 1, 3]) if @k == 4 && $k[2] eq 'responses';
        name('argument', $of, $value) if $key eq 'name' && $value;
        name('argument', $of, $1) if $value =~ m{#/components/parameters/(\w+)};
        name('field', $of) if $of =~ s/ properties$/ $key/;
    }

    name('answer', $_) for map { s/["\s]|\\n//gr } map { split /,/ }
        $text =~ /\benum: \[(.*?)\]/gs;
}


sub command
{
    my ($program) = @_;

    for my $command (`$program --help` =~ /^  (\w+)  /gm) {
        my $help = `$program $command --help`;

        name('command', $command);
        name('command', $command, $_)
            for $help =~ /^  +((?:-\w, )?--\w[\w-]*)/gm;
        name('exit', $command, $_) for $help =~ /^ (\d+)   /gm;
    }
}
