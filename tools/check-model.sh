#!/bin/sh
# check-model.sh DIR: searches t/model/store.pml with spin, in DIR.  The model
# must have no error, and each mutant must have one.

set -e

model=$(pwd)/t/model/store.pml
mkdir -p "$1"
cd "$1"

# search NAME DEFINES: prints the number of errors
search() {
    rm -rf "$1"
    mkdir "$1"
    (
        cd "$1"
        # shellcheck disable=SC2086
        spin $2 -a "$model" >spin.log
        ${CC:-cc} -O2 -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -w -o pan pan.c
        ./pan -m200000 -n >pan.log
        sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log
    )
}

failed=0

# expect NAME WHAT DEFINES
expect() {
    errors=$(search "$1" "$3")
    states=$(sed -n 's/^ *\([0-9e+.]*\) states, stored.*/\1/p' "$1/pan.log")
    if grep -q 'search depth too small\|out of memory' "$1/pan.log"; then
        errors=incomplete
    fi
    if [ "$2" = "$errors" ]; then ok=ok; else ok=FAILED; failed=1; fi
    echo "model $1: $errors errors, $states states, $ok"
}

expect kills                     0 '-DREADERS=0 -DOPS=4'
expect readers                   0 "-DKILLS=0 -DOPS=${OPS:-3}"
expect both                      0 '-DOPS=2'
expect mutant-1-intents-early    1 '-DMUTANT=1 -DREADERS=0 -DOPS=3'
expect mutant-2-leaves-first     1 '-DMUTANT=2 -DKILLS=0 -DOPS=2'
expect mutant-3-serial-kept      1 '-DMUTANT=3 -DKILLS=0 -DOPS=4'
expect mutant-4-directory-once   1 '-DMUTANT=4 -DKILLS=0 -DOPS=3'

exit $failed
