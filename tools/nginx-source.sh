#!/bin/sh

# Fetches the source of the nginx that Debian's release SUITE has (the package
# nginx-dev has headers only), without Debian's patches, and unpacks it:
#
#     tools/nginx-source.sh DIRECTORY SUITE
#
# apt gets source lists of its own for that, the system's stay as they are.

set -eu

dir=$1
suite=$2
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
apt source --download-only --tar-only nginx
tar -xzf nginx_*.orig.tar.gz --strip-components=1
rm -rf lists
touch configure          # it is newer than this file
