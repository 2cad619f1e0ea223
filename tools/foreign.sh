#!/bin/bash

# The libraries of the core and of its unit tests, for another C library or
# another machine, from Debian's sources:
#
#     tools/foreign.sh DIRECTORY COMPILER [HOST]
#
# PCRE2, zlib and cmocka are made by COMPILER, static, in DIRECTORY; HOST is the
# machine's name for configure.  pkg-config finds them in DIRECTORY/lib.

set -eu

tools=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
cc=$2
host=${3:-}
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
cd "$dir"

quietly() { "$@" > log 2>&1 || { tail -n 20 log >&2; exit 1; }; }

for package in pcre2 zlib cmocka; do
    [ -e "$package/configure" ] \
        || "$tools/source.sh" "$dir/$package" "$suite" "$package"
done

cd "$dir/pcre2"
quietly ./configure CC="$cc" CFLAGS='-O2 -fPIC' ${host:+--host="$host"} \
    --prefix="$dir" --disable-shared --enable-jit --disable-pcre2grep-jit
auto=(ACLOCAL=: AUTOCONF=: AUTOHEADER=: AUTOMAKE=:)
quietly make -s -j2 "${auto[@]}" libpcre2-8.la
quietly make -s "${auto[@]}" install-libLTLIBRARIES install-pkgconfigDATA \
    install-nodist_includeHEADERS install-includeHEADERS

cd "$dir/zlib"
quietly env CC="$cc" CHOST="$host" CFLAGS='-O2 -fPIC' ./configure --static \
    --prefix="$dir"
quietly make -s install

# of cmocka one file; its own cmake makes no more of it

cd "$dir/cmocka"
cp include/*.h "$dir/include"
$cc -O2 -fPIC -w -Iinclude -include stdint.h -include sys/types.h \
    -DHAVE_INTTYPES_H -DHAVE_MALLOC_H -DHAVE_STRINGS_H -DHAVE_UNISTD_H \
    -DHAVE_SIGNAL_H -DHAVE_SYS_TYPES_H -DHAVE_STDINT_H -DHAVE_STRUCT_TIMESPEC \
    -DHAVE_CLOCK_GETTIME -DHAVE_CLOCK_REALTIME -DHAVE_STRSIGNAL \
    -DHAVE_GCC_THREAD_LOCAL_STORAGE -c -o cmocka.o src/cmocka.c
ar rcs "$dir/lib/libcmocka.a" cmocka.o
