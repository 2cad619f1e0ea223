#!/bin/bash

# Builds an nginx with the module and runs tests in it:
#
#     tools/test-build.sh SUITE-KIND-COMPILER BUILD WARNINGS TEST...
#
# SUITE names the source (BUILD/source/SUITE), KIND is static or dynamic.  It is
# configured as Debian's nginx is.

set -eu

name=$1 build=$(cd "$2" && pwd) warnings=$3
shift 3
IFS=- read -r suite kind cc <<< "$name"
top=$(cd "$(dirname "$0")/.." && pwd)
out=$build/builds/$name

case $kind in
static)  add=--add-module targets=binary ;;
dynamic) add=--add-dynamic-module targets='binary modules' ;;
esac

# the source is shared, its configuration is not

"$top/tools/nginx-build.sh" "$out" "$build/source/$suite" "$targets" \
    --with-cc="$cc" --with-cc-opt="-g -O2 -fPIC $warnings" "$add=$top"

# all names are the project's

foreign=$(nm -o --defined-only -g "$out"/addon/*/*.o \
    | grep -v ' \(us_\|ngx_http_urlstore_\|ngx_modules\?\b\|ngx_module_\)' \
    || true)
[ -z "$foreign" ] || { echo "foreign names: $foreign"; exit 1; }

module=
[ "$kind" = static ] || module=$out/ngx_http_urlstore_module.so

echo "$name: $("$out/nginx" -v 2>&1), $("$cc" --version | head -n 1)"
cd "$top"
US_NGINX=$out/nginx US_MODULE=$module prove -It/lib "$@"
