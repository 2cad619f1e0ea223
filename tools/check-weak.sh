#!/bin/bash

# check-weak.sh GENMC: the scenarios of t/model/weak.c and their mutants, under
# RC11 and IMM.  A line for each scenario; "X": an error was found, "-": none.
#
# No scenario has an error.  With one of its orders relaxed it has one, or
# another order of the same scenario does the work of the first: the second
# list.  Each order has an error in some scenario.

set -eu

genmc=$1
model=$(cd "$(dirname "$0")/.." && pwd)/t/model/weak.c
out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=0
dead=' '

# an X for each model that finds an error, of SCENARIO without ORDER
check() {
    local how rc

    for how in --rc11 --imm; do
        rc=0
        "$genmc" $how --disable-estimation -- -DMUTANT="$2" -D"$1" "$model" \
            > "$out" 2>&1 || rc=$?

        if grep -Eq 'Assertion violation|Safety violation|Non-atomic race' \
            "$out"
        then
            printf X
        elif [ $rc = 0 ]; then
            printf -- -
        else
            cat "$out" >&2
            exit 1
        fi
    done
}

# scenario NAME 'ORDER...' 'COVERED...'
scenario() {
    local order found

    found=$(check "$1" NONE)
    printf '%-8s %s %s executions;' "$1" "$found" \
        "$(sed -n 's/.*executions explored: //p' "$out")"
    [ "$found" = -- ] || failed=1

    for order in $2 ${3:-}; do
        found=$(check "$1" "$order")
        printf ' %s %s' "$order" "$found"

        case " ${3:-} :$found" in
        *" $order "*:--) ;;
        *" $order "*) printf ' NOT COVERED'; failed=1 ;;
        *:--) printf ' SURVIVED'; failed=1 ;;
        *) dead+="$order " ;;
        esac
    done

    echo
}

# Why an order is covered: t/model/weak.txt.

scenario PUBLISH 'WORD SCAN NEXT_ID' 'SLOT'
scenario CHUNK   'WORD PLACE' 'ZERO ADDRESS'
scenario STALE   'LEAF WORD MATCHES PACKED' 'LEAF_HEADER AIM ADDRESS SCAN'
scenario APPEND  'SLOT LEAF WORD MATCHES PACKED' 'LEAF_HEADER AIM ADDRESS SCAN'
scenario AGAIN   'LEAF LEAF_HEADER WORD ADDRESS SCAN MATCHES PACKED' 'AIM'
scenario SPLIT   'LEAF WORD AIM MATCHES PACKED' 'LEAF_HEADER ADDRESS SCAN'
scenario INTENT  'WORD DONE PUBLISHED AT_INTENTS AT_NEXT' 'LIST'
scenario KILL    'LIST ENTER' 'WORD'
scenario RING    'WORD FITS PUBLISHED WRITTEN'
scenario SETS    'OBJECT WORD ZERO REUSED SEEK RUN'
scenario SITE    'WORD SITES SITE_LAST SITE_FIRST'
scenario ANSWER  'WORD DELETED CLAIM'
scenario KEYS    'ENTRY WORD BUCKET KEYS_END KEYS_WORDS'
scenario TAIL    'TAIL_BEFORE TAIL_SET TAIL_GET TAIL_AFTER'

orders=$(sed -n '/^enum {$/,/^};/s/^    \([A-Z_]*\),* .*/\1/p' "$model")

for order in $orders; do
    case $dead in
    *" $order "*) ;;
    *) echo "$order survived"; failed=1 ;;
    esac
done

exit $failed
