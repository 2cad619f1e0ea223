#!/bin/sh

# The main calls with curl:  examples/example.sh http://127.0.0.1:8080

set -eu

store=${1:-http://127.0.0.1:8080}


# Is this URL new?  It is added if so.
add_one() {
    curl -sS --data-urlencode "url=$1" -H 'Accept: text/plain' "$store/add"
}


# All links of a page, as they stand in it; one answer line for each.
add_page() {
    curl -sS -H 'Content-Type: text/plain' --data-binary @- \
        --url-query "base=$1" "$store/add"
}


# Is it known?  Adds nothing.
seen() {
    curl -sS --get --data-urlencode "url=$1" -H 'Accept: text/plain' \
        "$store/seen"
}


# id -> URL, for one and for many (a comma between them).
url() {
    curl -sS "$store/url/$1"
}


# Everything from an id on, in portions: an export, and a feed of new URLs.
since() {
    from=$1

    while part=$(curl -sS "$store/urls?from=$from&limit=1000") \
        && [ -n "$part" ]
    do
        echo "$part"
        last=$(echo "$part" | tail -n 1 | cut -f 1)
        from=$((last + 1))
    done
}


page=http://example.com/shop/list.html

add_one "$page"
printf '%s\n' item?id=7 /about.html 'HTTP://WWW.Example.com/about.html#team' \
    ftp://example.com/ | add_page "$page"
seen 'http://example.com/shop/./item?id=7'
seen 'http://example.com/never'
url 1
url 0,2,99
since 0
