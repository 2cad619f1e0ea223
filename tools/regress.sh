#!/bin/bash

# Brings faults back that were mended, one at a time, and runs the tests that
# have to find them:
#
#     tools/regress.sh DIRECTORY [NAME...]
#
# t/regress/NAME.patch is an edit of the source that takes a mend out.  Its head
# says which finding it was ("finding:"), at which commit the edit was seen to
# be found ("code:"), what is built ("build:") and what is run ("test:"), of
# which one at least has to fail.  A test that has no end within LIMIT, and in
# which nothing failed until then, has neither passed nor failed, unless its
# edit makes it wait ("hangs:", and for what).  DIRECTORY gets a clone of the
# commit, which stays for the next run.  Exit code 1: an edit does not apply or
# build, no test has found it, a test fails without it, too, or has no end.

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
LIMIT=${LIMIT:-600}               # seconds

# tests of an edit

tests() {
    sed -n 's/^test: //p' "$top/t/regress/$1.patch"
}

failed() {
    grep -aE '^# +Failed test|^\[  FAILED  \] [a-z]' test.log | head -n 2
}

# The exit code of a test; 124: it has no end.  It is stopped when something in
# it has failed: what it waits for from then on may take minutes.  Its servers
# end with it, as they have a PID namespace of their own, if that is permitted.
# Jobs of a shell ignore SIGINT, which tests send.

alone='unshare --pid --fork --kill-child --mount-proc'
$alone true 2> /dev/null || alone=

run() {
    local code pid

    timeout -k 20 $LIMIT $alone env --default-signal=INT bash -c "$1
        exit \$?" > test.log 2>&1 < /dev/null &
    pid=$!

    while kill -0 $pid 2> /dev/null && [ -z "$(failed)" ]; do
        sleep .2
    done

    kill $pid 2> /dev/null
    wait $pid
    code=$?
    return $((code == 137 ? 124 : code))
}

# a test that has passed without any edit is not run again

without() {
    [ -n "${passes[$1]:-}" ] && return
    run "$1"

    case $? in
    0)   passes[$1]=yes ;;
    124) echo "$name: no end in $LIMIT s without it: $1"; rc=1 ;;
    *)   echo "$name: fails without it: $1"; rc=1 ;;
    esac
}

for name; do
    patch=$top/t/regress/$name.patch
    start=$SECONDS
    found=

    make $(sed -n 's/^build: //p' "$patch") > test.log 2>&1

    while read -r test; do
        without "$test"
    done < <(tests "$name")

    if ! git apply "$patch"; then
        echo "$name: does not apply"
        rc=1
        continue
    fi

    if make $(sed -n 's/^build: //p' "$patch") > test.log 2>&1; then
        while read -r test; do
            run "$test" && continue
            code=$?
            found+=$(failed)

            if [ -z "$found" ] && [ $code = 124 ]; then
                if grep -q '^hangs: ' "$patch"; then
                    found="# no end in $LIMIT s: $test"
                else
                    echo "$name: no end in $LIMIT s: $test"
                    rc=1
                fi
            fi
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
