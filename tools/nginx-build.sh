#!/bin/bash

# Configures an nginx as Debian's is, with this module, and makes it:
#
#     tools/nginx-build.sh OUT SOURCE TARGETS OPTION...
#
# OUT gets Makefile, logs and results.  SOURCE is a source of nginx, or
# "debian": the headers of the package nginx-dev, which are enough for modules.
# TARGETS are those of nginx's Makefile ("modules", "binary modules").  The
# OPTIONs go to its configure, among them --add-module or --add-dynamic-module.
#
# It is configured again only if that can change something.

set -eu

out=$1 source=$2 targets=$3
shift 3
top=$(cd "$(dirname "$0")/.." && pwd)
debian=$top/build/debian/usr/share/nginx/src
[ -d "$debian" ] || debian=/usr/share/nginx/src
[ "$source" != debian ] || source=$debian

# a module of Debian's nginx that the tests use, and conf_flags does not name

case $targets in
    *binary*) set -- "$@" --with-http_addition_module ;;
esac

mkdir -p "$out"
out=$(cd "$out" && pwd)

# its configure takes ".S" anywhere in a path for the end of an assembler's name

case $top$out in
    *.S*) echo "$top: nginx cannot be built below a folder with \".S\"" \
        'in its name' >&2; exit 1 ;;
esac

. "$debian/conf_flags"

# config names the sources and makes a header of front/

state=$({ printf '%s\n' "$source" "${NGX_CONF_FLAGS[@]}" "$@"
    cd "$top" && ls src src/*/ && cat config src/*/config front/*; } | cksum)

cd "$source"

if [ "$state" != "$(cat "$out/state" 2>/dev/null)" ]; then
    rm -f "$out/state"
    ./configure --builddir="$out" "${NGX_CONF_FLAGS[@]}" "$@" \
        > "$out/configure.log" 2>&1 \
        || { tail -n 20 "$out/configure.log" >&2; exit 1; }
    echo "$state" > "$out/state"
fi

# shellcheck disable=SC2086
"${MAKE:-make}" --no-print-directory -f "$out/Makefile" $targets \
    > "$out/make.log" 2>&1 \
    || { grep -A 6 'error: \|undefined \|\*\*\*' "$out/make.log" >&2; exit 1; }
