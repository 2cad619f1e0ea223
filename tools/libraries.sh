#!/bin/sh

# The libraries that the core needs, or others, by pkg-config:
#
#     tools/libraries.sh check [LIBRARY]    a message for each that is missing
#     tools/libraries.sh cflags [LIBRARY]   flags of the compiler
#     tools/libraries.sh libs [LIBRARY]     flags of the linker
#
# make and config (the build inside of nginx) ask here.

set -eu

libraries=${2:-libpcre2-8 zlib}

# the package of Debian that has it

package() {
    case $1 in
    libpcre2-8) echo libpcre2-dev ;;
    zlib) echo zlib1g-dev ;;
    libpq) echo libpq-dev ;;
    esac
}

if ! command -v pkg-config > /dev/null; then
    echo 'pkg-config is missing: it finds the libraries' \
        '(Debian: pkg-config)' >&2
    exit 1
fi

missing=

for library in $libraries; do
    pkg-config --exists "$library" || {
        echo "library $library is missing: pkg-config does not find it" \
            "(Debian: $(package "$library"))" >&2
        missing=1
    }
done

[ -z "$missing" ] || exit 1

case ${1:-} in
check) ;;
# shellcheck disable=SC2086
cflags) pkg-config --cflags $libraries ;;
# shellcheck disable=SC2086
libs) pkg-config --libs $libraries ;;
*) echo 'usage: tools/libraries.sh check|cflags|libs [LIBRARY]' >&2; exit 2 ;;
esac
