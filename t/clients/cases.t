#!/usr/bin/perl

# The table of cases, clients/cases.json, done by the client of each language:
# against a server that injects faults, against the service, and against the
# router of a cluster.
#
#     CLIENTS='python go' prove -It/lib t/clients/cases.t     some of them

use strict;
use warnings;

use lib 't/lib';
use File::Temp qw(tempfile);
use UrlStore::Cluster;
use UrlStore::Fake;
use UrlStore::Test;

my $top = $UrlStore::Test::TOP;

my $python = "/usr/bin/python3 -B $top/clients/python/test/cases.py";

# what reads the jobs from $FILE and prints the results

my %drivers = (
    'python' => "$python < \$FILE",
    'asyncio' => "$python --async < \$FILE",
    'node' => "node $top/clients/node/test/cases.js < \$FILE",
    'go' => "cd $top/clients/go && RESULTS=\$FILE.out go test -count=1"
        . ' -run TestCases >&2 && cat $FILE.out && rm $FILE.out',
    'java' => "cd $top/clients/java && javac --release 11 -Xlint:all -Werror"
        . " -d $top/build/clients UrlStore.java test/Cases.java"
        . " && java -cp $top/build/clients Cases < \$FILE",
);

# where nobody listens; what each driver says on standard error

my $closed = UrlStore::Test::free_port();
my %said;

my @names = $ENV{CLIENTS} ? split(' ', $ENV{CLIENTS}) : sort keys %drivers;

my $json = JSON::PP->new->utf8->canonical->allow_nonref;
my $table = $json->decode(
    slurp("$top/clients/cases.json") =~ s/REPEAT(\d+)/'x' x $1/ger);
my %cases = map { $_->{name} => $_ } @{ $table->{fake} };

my $cluster = UrlStore::Cluster->new(shards => 2)->run;

my $fake = UrlStore::Fake->new(sub {
    my ($name, $n) = @_;

    # the router's second answer is lost, and it has forgotten the request

    return { forward => $cluster->t->port, keyless => 1,
        $n == 1 ? (drop => 'sent') : () } if $name eq 'router';

    my $steps = $cases{$name}{server};
    my $last = @$steps ? $steps->[-1] : undef;

    return $steps->[$n] // ($last && $last->{repeat} ? $last : undef);
});

my $conf = '';

$conf .= "urlstore_zone $_ 16m marks=visited revisit=1h;\n" for @names;
$conf .= "server {\nlisten 127.0.0.1:%%PORT%%;\n";
$conf .= "location /$_/ { urlstore_api $_; }\n" for @names;

my $t = UrlStore::Test->new->run("$conf}\n");
my $openapi = $t->get("/$names[0]/openapi.yaml")->{body};
my @live = grep { !$_->{needs} || index($openapi, $_->{needs}) >= 0 }
    @{ $table->{live} };

note(@live . ' of ' . @{ $table->{live} } . ' calls are for this service');


# Whether a value is what is expected: objects have at least the members
# expected, lists as many elements; a difference is returned as text.

sub differs
{
    my ($got, $want, $where) = @_;

    return '' if JSON::PP::is_bool($want) && JSON::PP::is_bool($got)
        && !$want == !$got;

    if (ref $want eq 'HASH') {
        return "$where: no object" if ref $got ne 'HASH';

        for my $k (sort keys %$want) {
            my $d = differs($got->{$k}, $want->{$k}, "$where.$k");
            return $d if $d ne '';
        }

        return '';
    }

    if (ref $want eq 'ARRAY') {
        return "$where: no list of " . @$want
            if ref $got ne 'ARRAY' || @$got != @$want;

        for my $i (0 .. $#$want) {
            my $d = differs($got->[$i], $want->[$i], "$where\[$i]");
            return $d if $d ne '';
        }

        return '';
    }

    return '' if !defined $got && !defined $want
        || defined $got && defined $want && !ref $got && $got eq $want;

    return "$where: " . $json->encode($got) . ' instead of '
        . $json->encode($want);
}


# /add?only=new&older=1d -> path, arguments; a duration in seconds

sub target
{
    my ($target) = @_;

    my ($path, $query) = split /\?/, $target, 2;
    my %args = map { s/\+/ /gr =~ s/%(..)/chr hex $1/ger }
        map { split /=/, $_, 2 } split /&/, $query // '';
    my %unit = (s => 1, h => 3600, d => 86400);

    $args{older} =~ s/^(\d+)([shd])$/$1 * $unit{$2}/e if $args{older};

    return ($path, \%args);
}


# the requests of a case, beside those expected

sub requests_differ
{
    my ($got, $want) = @_;

    return @$got . ' requests instead of ' . @$want if @$got != @$want;

    my %named;

    for my $i (0 .. $#$want) {
        my ($g, $w) = ($got->[$i], $want->[$i]);
        my ($path, $args) = target($g->{target});
        my $d = differs($g, { map { $_ => $w->{$_} }
            grep { exists $w->{$_} } qw(method headers json) }, "request $i");

        return $d if $d ne '';

        if (exists $w->{target}) {
            my ($p, $a) = target($w->{target});

            return "request $i: $g->{target}" if $p ne $path
                || $json->encode($a) ne $json->encode($args);
        }

        return "request $i: $g->{target}" if $w->{query}
            && $json->encode($args) ne $json->encode($w->{query});

        for (['key', $g->{headers}{'idempotency-key'}],
             ['connection', $g->{connection}])
        {
            my ($what, $value) = @$_;

            next if !exists $w->{$what};

            if (!defined $w->{$what}) {
                return "request $i has a $what" if defined $value;
                next;
            }

            return "request $i has no $what" if !defined $value;
            $d = name_of(\%named, $what, $w->{$what}, $value);
            return "request $i: $d" if $d;
        }
    }

    return '';
}


# the same name is the same value, another name another one

sub name_of
{
    my ($named, $what, $name, $value) = @_;

    my $known = $named->{$what}{$name} //= $value;

    return "another $what" if $known ne $value;

    for my $other (keys %{ $named->{$what} }) {
        return "the $what of before"
            if $other ne $name && $named->{$what}{$other} eq $value;
    }

    return '';
}


# the jobs of a language, as its driver reads them

sub jobs
{
    my ($who) = @_;

    my @jobs = map { {
        name => $_->{name}, options => $_->{options} // {},
        calls => $_->{calls},
        address => ($_->{address} // '') eq 'closed'
            ? "http://127.0.0.1:$closed"
            : 'http://127.0.0.1:' . $fake->port . "/$who/$_->{name}",
    } } @{ $table->{fake} };

    my @calls = map { { %$_ } } @live;
    delete @$_{qw(expect needs)} for @calls;

    push @jobs, { name => 'live', options => {}, calls => \@calls,
        address => 'http://127.0.0.1:' . $t->port . "/$who" };

    # 6 URLs, 12 URLs, and all of the cluster

    push @jobs, { name => 'router', options => {}, calls => [
        (map { my $n = $_; { do => 'add_all',
            urls => [map { "http://$who-$n-$_.test/" } 1 .. $n] } } 6, 12),
        { do => 'feed', from => 0, limit => 7 } ],
        address => 'http://127.0.0.1:' . $fake->port . "/$who/router" };

    my $text = join '', map { $json->encode($_) . "\n" } @jobs;

    # an URL that JSON::PP could not write

    $text =~ s{"LONE"}{"http://example.com/\\ud800x"}g;
    return $text;
}


sub start
{
    my ($who) = @_;

    my ($fh, $file) = tempfile(UNLINK => 1);
    print $fh jobs($who);
    close $fh;

    local $ENV{FILE} = $file;
    $said{$who} = "$file.err";
    open my $pipe, '-|', "{ $drivers{$who}; } 2>$file.err"
        or die "$drivers{$who}: $!";

    return $pipe;
}


sub judge
{
    my ($who, $got) = @_;

    if ($got->{name} eq 'live') {
        for my $i (0 .. $#live) {
            my $d = differs($got->{results}[$i], $live[$i]{expect},
                'result');
            is($d, '', "$who, the service: $live[$i]{do} (call $i)");
        }
        return;
    }

    if ($got->{name} eq 'router') {
        my ($first, $second, $all) = @{ $got->{results} };
        my %shards = map { ($_->{id} >> 40) => 1 } @{ $second->{items} };

        is(join(' ', sort keys %shards), '0 1', "$who: URLs of both shards");
        is(scalar @{ $second->{to_fetch} }, 12,
            "$who, the router: a lost answer loses no page");
        is(join(' ', sort { $a <=> $b } map { $_->{id} }
                grep { $_->{url} =~ m{^http://$who-} } @$all),
            join(' ', sort { $a <=> $b } map { $_->{id} }
                @{ $first->{items} }, @{ $second->{items} }),
            "$who, the router: the feed has all shards, each URL once");
        return;
    }

    my $case = $cases{ $got->{name} };
    my $d = differs($got->{results}, $case->{expect}, 'result');

    if ($d eq '' && $case->{requests}) {
        $d = requests_differ([$fake->requests("$who/$case->{name}")],
            $case->{requests});
    }

    # the message has the address

    if ($d eq '' && $case->{text}) {
        my $text = $got->{results}[-1]{error}{text};

        $d = "the message: $text" if index($text, 'POST http://127.0.0.1:'
            . $fake->port . "/$who/$case->{name}$case->{text}") < 0;
    }

    my ($least, $most) = @{ $case->{seconds} // [0, 30] };

    $d = sprintf '%.2f s', $got->{seconds} if $d eq ''
        && ($got->{seconds} < $least || $got->{seconds} > $most);

    is($d, '', "$who, $case->{name}: $case->{why}");
}


my %pipes = map { $_ => start($_) } @names;

for my $who (@names) {
    my %seen;
    my $pipe = $pipes{$who};

    while (my $line = <$pipe>) {
        my $got = $json->decode($line);
        $seen{ $got->{name} } = 1;
        judge($who, $got);
    }

    ok(close $pipe, "$who: left with 0") or diag(slurp($said{$who}));
    is(scalar(() = slurp($said{$who}) =~ m{http://127\.0\.0\.1:$closed/.*
            again[ ]for[ ](0\.3[ ]s|300ms)}gx), 1,
        "$who: one warning that nobody listens, with the address");
    is(join(' ', grep { !$seen{$_} } sort(keys %cases), qw(live router)),
        '',
        "$who: did all cases");
}
