#!/bin/sh
# check-model.sh DIR: searches t/model/*.pml with spin, in DIR.  Each model
# must have no error, and each of its mutants must have one.

set -e

models=$(pwd)/t/model
mkdir -p "$1"
cd "$1"

# search NAME MODEL DEFINES: prints the number of errors
search() {
    rm -rf "$1"
    mkdir "$1"
    (
        cd "$1"
        # shellcheck disable=SC2086
        spin $3 -a "$models/$2.pml" >spin.log
        ${CC:-cc} -O1 -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -w -o pan pan.c
        ./pan -m200000 -n >pan.log
        sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log
    )
}

failed=0

# expect MODEL NAME WHAT DEFINES
expect() {
    model=$1
    shift
    errors=$(search "$1" "$model" "$3")
    states=$(sed -n 's/^ *\([0-9e+.]*\) states, stored.*/\1/p' "$1/pan.log")
    if grep -q 'search depth too small\|out of memory' "$1/pan.log"; then
        errors=incomplete
    fi
    if [ "$2" = "$errors" ]; then ok=ok; else ok=FAILED; failed=1; fi
    echo "$model $1: $errors errors, $states states, $ok"
}

expect store kills                     0 '-DREADERS=0 -DOPS=4'
expect store readers                   0 "-DKILLS=0 -DOPS=${OPS:-3}"
expect store both                      0 '-DOPS=2'
expect store mutant-1-intents-early    1 '-DMUTANT=1 -DREADERS=0 -DOPS=3'
expect store mutant-2-leaves-first     1 '-DMUTANT=2 -DKILLS=0 -DOPS=2'
expect store mutant-3-serial-kept      1 '-DMUTANT=3 -DKILLS=0 -DOPS=4'
expect store mutant-4-directory-once   1 '-DMUTANT=4 -DKILLS=0 -DOPS=3'

expect growth requests                0 "-DOPS=${REQUESTS:-3}"
expect growth fresh-shards            0 '-DFRESH=1 -DOPS=2'
expect growth fresh-shards-deceived   1 '-DFRESH=2 -DOPS=2'
expect growth reach-4                 1 '-DREACH=4 -DOPS=2'
expect growth reach-5                 0 '-DREACH=5 -DOPS=2'

n=1
for what in seal-denies-any heir-denies-any heir-adds-any newer-answered \
    same-version drops-owner lower-version restart-forgets unasked two-maps \
    stranger-denies silence-denies
do
    expect growth "mutant-$n-$what" 1 "-DMUTANT=$n -DOPS=2"
    n=$((n + 1))
done

expect replog servers-restart        0 "-DRESTARTS=1 -DBEATS=${BEATS:-1}"
expect replog nodes-killed           0 '-DKILLS=1'
expect replog late-statements        0 '-DLATES=1'
expect replog three-terms            0 '-DTERMS=3 -DROWS=5'
expect replog other-rows             0 '-DXS=1'
expect replog slow-request           0 '-DREQUESTS=1'
expect replog reach-1-third-term     1 '-DREACH=1 -DTERMS=3 -DROWS=5'
expect replog reach-2-deposed        1 '-DREACH=2'
expect replog reach-3-shorter        1 '-DREACH=3'
expect replog reach-4-claim-beat     1 '-DREACH=4'

# mutant N WHAT DEFINES
mutant() {
    expect replog "mutant-$1-$2" 1 "-DMUTANT=$1 $3"
}

mutant 1 waits-before
mutant 2 read-back-counts            -DRESTARTS=1
mutant 3 no-predecessor              '-DRESTARTS=1 -DXS=1'
mutant 4 beat-reads
mutant 5 beat-without-row            -DRESTARTS=1
mutant 6 beyond-acked                -DRESTARTS=1
mutant 7 lease-from-answer
mutant 8 claim-read-back
mutant 9 claim-unknown               -DRESTARTS=1
mutant 10 sessions-compared          '-DRESTARTS=1 -DBEATS=2'
mutant 11 wait-reads-elsewhere       -DRESTARTS=1
mutant 12 claim-beat-ignored
mutant 13 beat-of-old-term
mutant 14 seen-without-beat
mutant 15 claims-alike               -DKILLS=1
mutant 16 admitted-once              -DREQUESTS=1

exit $failed
