#!/bin/bash

# Makes the samples in t/data/corpora from the whole lists:
#
#     tools/samples.sh DIRECTORY
#
# DIRECTORY holds NAME.txt.xz of each list, as `make corpora` leaves them in
# build/corpora.  A sample is the head of its list, so that a program which
# reads the first N lines reads the same ones from either; non_latin holds all
# lines of five lists with a letter of another script than the Latin one.
# t/data/README.md says where the lists come from and under which licences.

set -euo pipefail

from=${1:?usage: tools/samples.sh DIRECTORY}
top=$(cd "$(dirname "$0")/.." && pwd)
to=$top/t/data/corpora

samples='
reddit_submissions             100000
eot2024_A                      100000
html_news_blogs_pages          100000
html_mdn_archived_pages        100000
html_forms_forums_shops_pages   35000
trackawesomelist_md            100000
tweetfeed_iocs                  60000
alphagov_old_urls               50000
zhihu_hot_daily                 20000
brave_sitelist                  10000
'

scripts='html_forms_forums_shops_pages html_news_blogs_pages
         reddit_submissions tweetfeed_iocs trackawesomelist_md'


pack() { xz -9e -T1 > "$to/$1.txt.xz.new" && mv "$to/$1.txt.xz"{.new,}; }


# lines that are UTF-8 after percent-decoding, with a letter of another script

non_latin() {
    perl -MEncode -ne '
        chomp(my $url = $_);
        next if !/[\x80-\xff]|%[c-f][0-9a-f]/i;
        s/%([0-9a-f]{2})/chr hex $1/gie;
        my $text = eval { decode("UTF-8", $_, Encode::FB_CROAK) } // next;
        print "$url\n" if $text =~ /(?=[^\x00-\x7f])(?=\p{L})\P{Latin}/'
}


mkdir -p "$to"

while read -r name lines; do
    [ -n "$name" ] || continue
    # awk reads to the end, so that no program before it fails
    xz -dc "$from/$name.txt.xz" | awk -v n="$lines" 'NR <= n' | pack "$name"
done <<< "$samples"

for name in $scripts; do
    xz -dc "$from/$name.txt.xz"
done | non_latin | pack non_latin

du -ch "$to"/*.xz
