#!/bin/sh

# Copies to the node TO the URLs of the node FROM that TO does not have yet, in
# the order of ids, so that ids are the same on both.
#
#     tools/follow.sh FROM TO            again and again, every second
#     tools/follow.sh --once FROM TO     until there is nothing new
#
# Only this script may add to TO.  A URL that was deleted at FROM before it was
# copied would shift the ids after it: the script notices that and ends with
# exit code 1.

set -eu

once=
if [ "${1:-}" = --once ]; then
    once=1
    shift
fi

[ $# = 2 ] || { echo "usage: $0 [--once] FROM TO" >&2; exit 2; }

from=$1 to=$2
part=$(mktemp)
trap 'rm -f "$part"' EXIT


next_id() {
    curl -fsS "$to/stats" | sed -n 's/.*"urls": *\([0-9]*\).*/\1/p'
}


while :; do
    next=$(next_id)
    curl -fsS -o "$part" "$from/urls?from=$next&limit=5000&deleted=1"

    if [ -s "$part" ]; then
        cut -f 2 "$part" \
            | curl -fsS -H 'Content-Type: text/plain' --data-binary @- \
                "$to/add" \
            | cut -f 1 | paste - "$part" \
            | awk '$1 != $2 { print "id " $2 " is " $1 " there"; exit 1 }' >&2
    elif [ -n "$once" ]; then
        exit 0
    else
        sleep 1
    fi
done
