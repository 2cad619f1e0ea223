#!/bin/bash

# Builds a server with the module and runs tests in it:
#
#     tools/test-build.sh SOURCE-KIND-COMPILER BUILD WARNINGS JOBS TEST...
#
# The source is $NGINX_SOURCES/SOURCE or BUILD/source/SOURCE: that of nginx or
# of a server derived from it.  KIND is static or dynamic.  It is configured as
# Debian's nginx is.  What the tests print is also in
# BUILD/builds/SOURCE-KIND-COMPILER.log.

set -eu -o pipefail

name=$1 build=$(cd "$2" && pwd) warnings=$3 jobs=$4
shift 4
cc=${name##*-}
kind=${name%-*}
source=${kind%-*}
kind=${kind##*-}
top=$(cd "$(dirname "$0")/.." && pwd)
out=$build/builds/$name

case $kind in
static)  add=--add-module ;;
dynamic) add=--add-dynamic-module ;;
*) echo "$name is not SOURCE-static-COMPILER, ...-dynamic-..." >&2; exit 1 ;;
esac

for dir in "${NGINX_SOURCES:+$NGINX_SOURCES/$source}" "$build/source/$source"
do
    [ ! -e "$dir/configure" ] || break
done

# the source is shared, its configuration is not

"$top/tools/nginx-build.sh" "$out" "$dir" 'binary modules' \
    --with-cc="$cc" --with-cc-opt="-g -O2 -fPIC $warnings" "$add=$top" \
    --add-dynamic-module="$top/src/postgres"

# all names are the project's

foreign=$(nm -o --defined-only -g "$out"/addon/*/*.o \
    | grep -v ' \(us_\|ngx_http_urlstore_\|ngx_modules\?\b\|ngx_module_\)' \
    || true)
[ -z "$foreign" ] || { echo "foreign names: $foreign"; exit 1; }

module=
[ "$kind" = static ] || module=$out/ngx_http_urlstore_module.so

# Angie's binary has its own name

server=$out/nginx
[ -x "$server" ] || server=$out/angie

echo "$name: $("$server" -v 2>&1), $("$cc" --version | head -n 1)" \
    | tee "$out.log"
cd "$top"
export US_NGINX=$server US_MODULE=$module
export US_POSTGRES_MODULE=$out/ngx_http_urlstore_postgres_module.so
perl -It/lib -S prove --timer -j "$jobs" --harness UrlStore::Harness -It/lib \
    "$@" | tee -a "$out.log"
