package UrlStore::Conf;

# The configurations of conf/, run as they stand in their files.
#
#     my $t = UrlStore::Conf::run('urlstore');
#     my $t = UrlStore::Conf::run('urlstore', examples => 1);
#     my $t = UrlStore::Conf::run('balancer', ports => { 8081 => 12345 });
#
# Only ports and paths are filled in: 8080 is the test's, the others those of
# `ports`.  With `examples`, lines that begin with # and no space are taken
# in, too; with `log`, those of the location /log, for replicas at 127.0.0.1.
# One thing is added: a client's address is that of its header
# X-Client, so that access rules can be tried from 127.0.0.1.

use strict;
use warnings;

use UrlStore::Test ();


sub run
{
    my ($name, %o) = @_;

    my $t = UrlStore::Test->new(daemon => 1);
    my $text = text($name, %o);
    my ($dir, $port) = ($t->dir, $t->port);

    mkdir "$dir/tmp";

    # a module inside of nginx (make test-builds) is not loaded

    my $load = $t->{module} eq '' ? '' : "load_module $t->{module};";

    $text =~ s|^load_module .*;|$load|m;
    $text =~ s|^pid .*;|pid $dir/nginx.pid;|m or die 'no pid';
    $text =~ s|^error_log \S+ |error_log $dir/error.log |m or die 'no log';
    $text =~ s|127\.0\.0\.1:(\d+)|'127.0.0.1:' . ($1 == 8080 ? $port
        : $o{ports}{$1} // die "no port for $1")|ge;
    $text =~ s|^http \{\n|http {\n    set_real_ip_from 127.0.0.1;\n    |m;
    $text =~ s|(set_real_ip_from .*\n)|$1    real_ip_header X-Client;\n|;

    UrlStore::Test::spew("$dir/nginx.conf", $text);

    return $t->run;
}


sub text
{
    my ($name, %o) = @_;

    my $text = UrlStore::Test::slurp("$UrlStore::Test::TOP/conf/$name.conf");

    $text =~ s/^( *)#(?=\S|    )/$1/mg if $o{examples};
    $text =~ s{(^ *#location = /log \{\n(?:.*\n)*?^ *#\}\n)}
        {$1 =~ s/^( *)#/$1/mgr =~ s/10\.0\.0\.2/127.0.0.1/r}me if $o{log};

    return $text;
}


# Spellings of a path: what clients may try, to get around a location for it.

sub spellings
{
    my ($path) = @_;

    my ($first, $rest) = $path =~ m{^/(.)(.*)$};
    my $code = sprintf '%%%02x', ord $first;

    return ((map { "$path$_" } '/', '//', '/.', '/./', '/..', ';', ';x',
            ';x=1', '%2f', '%2F', '%252f', '%00', '%20', '%09', '%0a', '%3f',
            '%3b', '%5c', '\\', '.', ',', '~', '+', '?', '?x', '#', '#x'),
        (map { "$_$path" } '/', '//', '/.', '/x/..', '/x/../.', '/%2e',
            '/%2E/x/%2e%2e', '/..', '/x/..;', '/;', '/%2f', '/%5c',
            'http://other', 'HTTP://127.0.0.1'),
        "/$code$rest", "//$code$rest", "/$code$rest/", "/%25" . substr($code, 1)
            . $rest, "/\u$first$rest", "\U$path", "/$first$rest" =~ s|/|\\|gr,
        "/$first$rest" =~ s|/|/./|gr, "/$first$rest" =~ s|/|/x/../|gr,
        "/$first$rest" =~ s|(?<=.)/|//|gr,
        "/$first$rest" =~ s|(?<=.)/|%2f|gr);
}


1;
