#!/bin/sh

# Fetches the source of Debian's nginx (the package nginx-dev has headers only)
# and unpacks it:
#
#     tools/nginx-source.sh DIRECTORY
#
# apt gets source lists of its own for that, the system's stay as they are.

set -eu

dir=$1
mirror=http://deb.debian.org
key=/usr/share/keyrings/debian-archive-keyring.gpg
. /etc/os-release

rm -rf "$dir"
mkdir -p "$dir/lists/partial"
cd "$dir"

cat > sources.list <<END
deb-src [signed-by=$key] $mirror/debian $VERSION_CODENAME main
deb-src [signed-by=$key] $mirror/debian-security $VERSION_CODENAME-security main
END

apt() {
    apt-get -q -o Dir::Etc::SourceList="$PWD/sources.list" \
        -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$PWD/lists" \
        -o APT::Sandbox::User=root "$@" > apt.log 2>&1 \
        || { tail -5 apt.log; exit 1; }
}

apt update
apt source --download-only nginx
tar -xzf nginx_*.orig.tar.gz --strip-components=1
rm -rf lists
touch configure          # it is newer than this file
