#!/bin/sh

# Fetches the source of a package of Debian's release SUITE, that of nginx if
# none is named (nginx-dev has headers only), without Debian's patches, and
# unpacks it:
#
#     tools/source.sh DIRECTORY SUITE [PACKAGE]
#
# apt gets source lists of its own for that, the system's stay as they are.

set -eu

dir=$1
suite=$2
package=${3:-nginx}
key=/usr/share/keyrings/debian-archive-keyring.gpg

# the mirror that this system uses

mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
    'Origin: Debian' 'Label: Debian' 'Component: main' | head -n 1)
[ -n "$mirror" ] || { echo 'apt has no lists: apt-get update' >&2; exit 1; }

rm -rf "$dir"
mkdir -p "$dir/lists/partial"
cd "$dir"

cat > sources.list <<END
deb-src [signed-by=$key] $mirror $suite main
END

apt() {
    apt-get -q -o Dir::Etc::SourceList="$PWD/sources.list" \
        -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$PWD/lists" \
        -o APT::Sandbox::User=root "$@" > apt.log 2>&1 \
        || { tail -n 5 apt.log; exit 1; }
}

apt update
apt source --download-only --tar-only "$package"
tar -xf "$package"_*.orig.tar.?z* --strip-components=1
rm -rf lists
touch configure          # it is newer than this file
