#!/usr/bin/perl

# A batch without a client: Ruby and PHP; in US_FULL=1 Rust and C#, which need
# a compiler each (make test-languages).

use strict;
use warnings;

use lib 't/lib';
use UrlStore::Test;

my $examples = "$UrlStore::Test::TOP/examples";
my @languages = (qw(ruby php), full() ? qw(rust csharp) : ());
my $t = UrlStore::Test->new->run(join('', map { "urlstore_zone $_ 16m;\n" }
    @languages) . join '', map { <<CONF } 0 .. $#languages);
server {
    listen 127.0.0.1:%%PORT@{[ $_ || '' ]}%%;
    location / { urlstore_api $languages[$_]; }
}
CONF

my %commands = (
    ruby => sub { "ruby $examples/batch.rb http://$_[0]" },
    php => sub { "php $examples/batch.php http://$_[0]" },
    rust => sub { "rustc -D warnings -o $t->{dir}/batch $examples/batch.rs "
        . "&& $t->{dir}/batch $_[0]" },
    csharp => sub { "mcs -warnaserror -r:System.Net.Http "
        . "-out:$t->{dir}/batch.exe $examples/batch.cs "
        . "&& mono $t->{dir}/batch.exe http://$_[0]" },
);

spew("$t->{dir}/links", "http://a.test/\nHTTP://A.test/#x\nftp://a.test/\n"
    . "http://a.test/b?c=1&d=%22\n");

for my $n (0 .. $#languages) {
    my $name = $languages[$n];
    my $command = $commands{$name}->('127.0.0.1:' . $t->port($n));

    is(`{ $command; } < $t->{dir}/links 2>&1`,
        "0 http://a.test/\n1 http://a.test/b?c=1&d=%22\n", $name);
    is(`{ $command; } < $t->{dir}/links 2>&1`, '', '... again');
    is($?, 0, '... without an error');

    my $none = $commands{$name}->('127.0.0.1:' . UrlStore::Test::free_port());

    isnt(system("{ $none; } < $t->{dir}/links >/dev/null 2>&1"), 0,
        '... and one without a store');
}
