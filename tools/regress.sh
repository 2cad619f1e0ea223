#!/bin/bash

# Brings faults back that were mended, one at a time, and runs the tests that
# have to find them:
#
#     tools/regress.sh DIRECTORY [NAME...]
#
# t/regress/NAME.patch is an edit of the source that takes a mend out.  Its head
# says which finding it was ("finding:"), at which commit the edit was seen to
# be found ("code:"), what is built ("build:") and what is run ("test:"), of
# which one at least has to fail.  DIRECTORY gets a clone of the commit, which
# stays for the next run.  Exit code 1: an edit does not apply or build, no test
# has found it, or a test fails without it, too.

set -u

dir=$1
shift
top=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || set -- $(cd "$top/t/regress" && ls *.patch | sed 's/\.patch$//')

[ -d "$dir/.git" ] || git clone -q --no-hardlinks "$top" "$dir" || exit 2
cd "$dir" || exit 2
git fetch -q "$top" HEAD && git checkout -q -f FETCH_HEAD || exit 2
{ make deps DEPS='build test web clients' && make programs test-programs \
    t/web/node_modules/.package-lock.json \
    t/clients/node_modules/.package-lock.json; } > build.log 2>&1 \
    || { tail build.log; exit 2; }

export PATH=$PWD/build/debian/usr/sbin:$PWD/build/debian/usr/bin:$PATH
declare -A passes
rc=0

# tests of an edit

tests() {
    sed -n 's/^test: //p' "$top/t/regress/$1.patch"
}

# whether a test passes without any edit

passes() {
    [ -n "${passes[$1]:-}" ] && return
    timeout -k 20 600 bash -c "$1" > test.log 2>&1 < /dev/null \
        && passes[$1]=yes
}

for name; do
    patch=$top/t/regress/$name.patch
    start=$SECONDS
    found=

    make $(sed -n 's/^build: //p' "$patch") > test.log 2>&1

    while read -r test; do
        passes "$test" || { echo "$name: fails without it: $test"; rc=1; }
    done < <(tests "$name")

    if ! git apply "$patch"; then
        echo "$name: does not apply"
        rc=1
        continue
    fi

    if make $(sed -n 's/^build: //p' "$patch") > test.log 2>&1; then
        while read -r test; do

            # a test may wait for what does not come without the mend

            timeout -k 20 240 bash -c "$test" > test.log 2>&1 < /dev/null \
                || found+=$(grep -aE '^# +Failed test|^\[  FAILED  \] [a-z]' \
                    test.log | head -n 2)
        done < <(tests "$name")

        [ -n "$found" ] || { found='NO TEST HAS FOUND IT'; rc=1; }
    else
        found="does not build: $(grep -m 1 error test.log)"
        rc=1
    fi

    git checkout -q -f .
    echo "$name:" $found "($((SECONDS - start)) s)"
done

exit $rc
