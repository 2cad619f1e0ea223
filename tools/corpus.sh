#!/bin/sh

# Finds the lists of URLs that tests and benchmarks read.
#
#     tools/corpus.sh path NAME        the file of a list
#     tools/corpus.sh cat NAME         its lines
#     tools/corpus.sh names            all lists
#     tools/corpus.sh about NAME...    one line: where these are read from
#     tools/corpus.sh whole NAME...    fails if one of them is a sample
#
# A list is NAME.txt.xz, NAME.txt.gz or NAME.txt.  The first of these
# directories that exists is used:
#
#     $CORPORA            whole lists made before
#     build/corpora       whole lists made by `make corpora`
#     t/data/corpora      samples: the head of each list
#
# A list that it does not hold is read from the samples.

set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
samples=$top/t/data/corpora

die() { echo "tools/corpus.sh: $*" >&2; exit 1; }


# the file of list $2 in directory $1

file_in() {
    for file in "$1/$2.txt.xz" "$1/$2.txt.gz" "$1/$2.txt"; do
        [ ! -f "$file" ] || { echo "$file"; return; }
    done
    return 1
}


path() {
    file_in "$dir" "$1" || file_in "$samples" "$1" \
        || die "no list \"$1\" in $dir; there are:" $(names)
}


names() {
    for file in "$dir"/*.txt.xz "$dir"/*.txt.gz "$dir"/*.txt \
        "$samples"/*.txt.xz
    do
        [ ! -f "$file" ] || basename "$file" | sed 's/\.txt.*//'
    done | sort -u
}


about() {
    whole= sampled=

    for name; do
        file=$(path "$name")
        case $file in
        "$samples"/*) sampled="$sampled $name" ;;
        *) whole="$whole $name" ;;
        esac
    done

    [ -z "$whole" ] || printf 'whole lists in %s:%s' "$dir" "$whole"
    [ -z "$whole" ] || [ -z "$sampled" ] || printf '; '
    [ -z "$sampled" ] || printf 'samples in t/data/corpora:%s%s' "$sampled" \
        ' (make corpora makes the whole lists)'
    echo
}


if [ -n "${CORPORA:-}" ]; then
    [ -d "$CORPORA" ] || die "CORPORA=$CORPORA is not a directory"
    dir=$(cd "$CORPORA" && pwd)
elif [ -d "$top/build/corpora" ]; then
    dir=$top/build/corpora
else
    dir=$samples
fi

command=${1:-}
[ $# = 0 ] || shift

case $command in
path)
    path "${1:?a name is missing}"
    ;;
cat)
    file=$(path "${1:?a name is missing}")
    case $file in
    *.xz) exec xz -dc "$file" ;;
    *.gz) exec gzip -dc "$file" ;;
    *) exec cat "$file" ;;
    esac
    ;;
names)
    names
    ;;
about)
    about "$@"
    ;;
whole)
    case $(about "$@") in
    *'samples in t'*) die "whole lists are needed: $(about "$@")" ;;
    esac
    ;;
*)
    die 'usage: tools/corpus.sh path|cat NAME, names, about|whole NAME...'
    ;;
esac
