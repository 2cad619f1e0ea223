#!/bin/bash

# check-weak.sh GENMC: the scenarios of t/model/weak.c and their mutants, under
# RC11 and IMM.
#
# Each scenario has no error, and each mutant has one, but those that are listed
# here: another order of the same scenario does their work.

set -eu

genmc=$1
model=$(cd "$(dirname "$0")/.." && pwd)/t/model/weak.c
out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=0

# expect SCENARIO MUTANT 0|1
expect() {
    local errors=0 how rc

    for how in --rc11 --imm; do
        rc=0
        "$genmc" $how --disable-estimation -- -DMUTANT="$2" -D"$1" "$model" \
            > "$out" 2>&1 || rc=$?

        if grep -q 'Assertion violation\|Safety violation' "$out"; then
            errors=1
        elif [ $rc != 0 ]; then
            cat "$out" >&2
            exit 1
        fi
    done

    if [ "$errors" = "$3" ]; then ok=ok; else ok=FAILED; failed=1; fi
    echo "$1 mutant $2: $errors errors," \
        "$(sed -n 's/.*executions explored: //p' "$out") executions, $ok"
}

# scenario SCENARIO ORDERS COVERED...
scenario() {
    local n name=$1 orders=$2 covered=" ${*:3} "

    expect "$name" 0 0

    for n in $(seq "$orders"); do
        case $covered in
        *" $n "*) expect "$name" "$n" 0 ;;
        *) expect "$name" "$n" 1 ;;
        esac
    done
}

# A header's release, or the directory's, orders what was written before it; the
# fence after the vector load makes acquires of all loads before it.  RING 2 is
# a load with a branch before the store that it orders.

scenario PUBLISH 5 5
scenario STALE 14 1 3 5 6 7 9 10 11 12 13 14
scenario SPLIT 13 1 3 6 8 9 10 11 12 13
scenario INTENT 8 6 8
scenario KILL 3 3
scenario RING 4 2
scenario SETS 8 6 8
scenario SITE 6 5
scenario TAIL 4
scenario HOT 3 3

exit $failed
