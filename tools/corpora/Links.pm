package Links;

# The URLs in pages: links of HTML, links of markdown, fields of CSV.
#
# The rules of HTML are those by which the lists were first made; they find
# what a browser finds but for broken markup, and are kept because the lists
# are known by their checksums.  Pages are read as text (decode()); links are
# returned as UTF-8 bytes.
#
# HTML::Entities is in Debian's libhtml-parser-perl.

use strict;
use warnings;

use base 'Exporter';

use Encode qw(find_encoding);
use HTML::Entities ();

our @EXPORT_OK = qw(csv decode html_address html_links markdown_links resolve);

my $ATTRIBUTES = qr/(?:[^>"']|"[^"]*"|'[^']*')*/;
my $VALUE = qr/"([^"]*)"|'([^']*)'|([^\s"'>]+)/;

my %LINK = (a => 'href', area => 'href', link => 'href', iframe => 'src',
    frame => 'src');
my %REL = map { $_ => 1 } qw(canonical alternate next prev shortlink amphtml);


# The rows of a CSV text, as Python's csv module reads them: text after a
# closing quote belongs to its field.

sub csv
{
    my ($text, $code) = @_;

    my @row;

    pos($text) = 0;

    while (pos($text) < length $text) {
        my $field = '';

        if ($text =~ /\G"((?:[^"]|"")*)"?/gc) {
            $field = $1 =~ s/""/"/gr;
        }

        $text =~ /\G([^,\r\n]*)/gc;
        push @row, $field . $1;

        next if $text =~ /\G,/gc && pos($text) < length $text;

        $text =~ /\G(?:\r\n|\n|\r|\z)/gc;
        $code->(@row);
        @row = ();
    }
}


# The text of a page, by the encoding that is given, else that which the page
# declares, else UTF-8.  One that can be read here declares UTF-16 in vain.

sub decode
{
    my ($bytes, $name) = @_;

    ($name) = substr($bytes, 0, 4096) =~ /charset\s*=\s*["']?([\w-]+)/i
        if !defined $name;

    $name = 'utf-8' if !defined $name || $name =~ /^utf-?16/i
        || !find_encoding($name);

    return find_encoding($name)->decode($bytes);
}


# The links of a page whose address is base (undef: unknown).

sub html_links
{
    my ($text, $base) = @_;

    my @links;

    $text =~ s{<!--.*?-->|<(script|style)\b.*?</\1\s*>}{}gis;

    if ($text =~ /<base\b($ATTRIBUTES)>/i) {
        my $href = { _attributes($1) }->{href};

        $base = resolve($href, $base) // $base if defined $href;
    }

    while ($text =~ /<(a|area|iframe|frame|link)\b($ATTRIBUTES)>/gi) {
        my ($name, %a) = (lc $1, _attributes($2));

        next if $name eq 'link'
            && !grep { $REL{lc $_} } split ' ', $a{rel} // '';

        my $link = $a{ $LINK{$name} } // '';

        $link = $link eq '' ? undef : resolve($link, $base);
        push @links, $link if defined $link;
    }

    utf8::encode($_) for @links;

    return @links;
}


# the attributes of a tag; the first of a name counts

sub _attributes
{
    my ($text) = @_;

    my %a;

    while ($text =~ /([a-zA-Z_:-]+)\s*=\s*(?:$VALUE)/g) {
        my ($name, $value) = (lc $1, $2 // $3 // $4);

        # "&section" begins with "&sect"

        HTML::Entities::_decode_entities($value,
            \%HTML::Entities::entity2char, 1);
        $a{$name} //= $value;
    }

    return %a;
}


# The address that a page gives as its own: the first canonical link or og:url.

sub html_address
{
    my ($text) = @_;

    while ($text =~ /<(link|meta)\b($ATTRIBUTES)>/gi) {
        my ($name, $a) = (lc $1, $2);
        my $own = $name eq 'link' ? $a =~ /\brel\s*=\s*["']?canonical\b/i
            : $a =~ /\bproperty\s*=\s*["']?og:url\b/i;
        my $key = $name eq 'link' ? 'href' : 'content';

        return resolve($1 // $2 // $3)
            if $own && $a =~ /\b$key\s*=\s*(?:"(https?:[^"]*)"
                |'(https?:[^']*)'|(https?:[^\s"'>]+))/xi;
    }

    return;
}


# The links and plain URLs of a markdown text; those that begin with "/" too.

sub markdown_links
{
    my ($text) = @_;

    my @links;

    utf8::decode($text);

    while ($text =~ m{\]\((https?://[^)\s<>]+|/[^)\s]*)\)
        |(?<!\()(https?://[^\s<>"'`)\[\]]+)}gx)
    {
        push @links, $1 // $2;
    }

    utf8::encode($_) for @links;

    return @links;
}


# A link against a base (RFC 3986, 5.2, as Python's urljoin() does it), without
# its fragment; undef unless it is http or https and its host has a dot.

sub resolve
{
    my ($link, $base) = @_;

    $link =~ s/[\t\n\x0b\f\r\x1c-\x1e\x85\x{2028}\x{2029}]//g;
    $link =~ s/^\s+//;
    $link =~ s/\s+$//;
    $link =~ s/#.*//s;

    my ($scheme, $host, $path, $query) = _split($link);
    my ($base_scheme, $base_host, $base_path, $base_query)
        = defined $base ? _split($base) : ();

    return if defined $scheme && $scheme !~ /^https?$/i;

    my $same = defined $base_scheme
        && (!defined $scheme || lc $scheme eq lc $base_scheme);
    my $url;

    if (defined $scheme && $host ne '') {
        $url = $link =~ s/^(\w+)/lc $1/er;
        $url =~ s/^([^?]*)\?$/$1/ if $same;

    } elsif (!$same) {
        return;

    } elsif ($host ne '') {
        $url = "$base_scheme:$link";

    } else {
        if ($path eq '') {
            $path = $base_path;
            $query = $base_query if $query eq '';

        } else {
            $path = _join($base_path, $path);
        }

        $url = "$base_scheme://$base_host$path";
        $url .= "?$query" if $query ne '';
    }

    $url =~ s/ /%20/g;

    # the host ends at the next slash, in broken URLs too

    my ($name) = $url =~ m{^[^:]+://([^/]*)} or return;

    $name =~ s/^.*@//;
    $name =~ s/:\d*$//;

    return $name =~ /\./ ? $url : undef;
}


# scheme (undef without one), host, path, query

sub _split
{
    my ($url) = @_;

    my ($scheme, $host, $path, $query) = $url
        =~ m{^(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?://([^/?#]*))?
            ([^?#]*)(?:[?]([^#]*))?}xs;

    return ($scheme, $host // '', $path, $query // '');
}


# a path against that of the base, without dot segments

sub _join
{
    my ($base, $path) = @_;

    my @parts = split m{/}, $path, -1;

    if ($path !~ m{^/}) {
        my @above = split m{/}, $base, -1;

        pop @above if @above && $above[-1] ne '';
        @parts = (@above, @parts);

        # no empty segment between the first and the last

        @parts = ($parts[0], (grep { $_ ne '' } @parts[1 .. $#parts - 1]),
            $parts[-1]) if @parts > 2;
    }

    my @out;

    for my $part (@parts) {
        if ($part eq '..') {
            pop @out;

        } elsif ($part ne '.') {
            push @out, $part;
        }
    }

    push @out, '' if $parts[-1] =~ /^\.\.?$/;

    return join('/', @out) =~ s{^/?}{/}r;
}


1;
