#!/bin/bash

# The Debian packages as an administrator meets them:
#
#     tools/test-deb.sh DEB [PREVIOUS]
#
# DEB holds the packages that make deb has built, PREVIOUS older ones; without
# PREVIOUS the same with a lower version.  lintian finds nothing.  In a bare
# Debian (debootstrap, stock nginx, no network but its own) they are installed
# by apt, configured, used, upgraded, removed and purged.  ARCH=arm64: packages
# of another machine, under qemu, which the kernel has to be ready for.
#
# Needs root and debootstrap.  All processes and mounts end with this one.

set -eu

deb=$(cd "${1:?usage: tools/test-deb.sh DEB [PREVIOUS]}" && pwd)
previous=${2:-}
tools=$(cd "$(dirname "$0")" && pwd)
dir=$deb/bare
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
    'Origin: Debian' 'Label: Debian' 'Component: main' | head -n 1)

rm -rf --one-file-system "$dir"
[ "${KEEP:-}" = 1 ] || trap 'rm -rf --one-file-system "$dir"' EXIT

lintian --allow-root --fail-on error,warning "$deb"/*.changes
echo 'ok: lintian'


# an archive of packages: bare/old and bare/new

lower() {
    local p=$1 to=$2 work=$deb/lower

    rm -rf "$work"
    dpkg-deb -R "$p" "$work"
    sed -i -E -e 's/^(Version: .*)/\1~previous/' \
        -e 's/(urlstore \(= [^)]*)\)/\1~previous)/' "$work/DEBIAN/control"
    dpkg-deb -b --root-owner-group "$work" "$to" > "$deb/lower.log"
    rm -rf "$work" "$deb/lower.log"
}

debootstrap ${ARCH:+--arch="$ARCH"} --variant=minbase \
    --include=ca-certificates "$suite" "$dir" "$mirror" > "$deb/bare.log" 2>&1 \
    || { tail -n 20 "$deb/bare.log" >&2; exit 1; }
rm -f "$deb/bare.log"

mkdir "$dir/old" "$dir/new"
cp "$deb"/*.deb "$dir/new"
rm -f "$dir"/new/*-dbgsym_*

if [ -n "$previous" ]; then
    cp "$previous"/*.deb "$dir/old"
    rm -f "$dir"/old/*-dbgsym_*
else
    for p in "$dir"/new/*.deb; do
        lower "$p" "$dir/old"
    done
fi

cp -L /etc/resolv.conf "$dir/etc/resolv.conf"
cp "$tools/test-deb-inside.sh" "$dir/root/inside"
printf '#!/bin/sh\nexit 101\n' > "$dir/usr/sbin/policy-rc.d"
chmod 755 "$dir/usr/sbin/policy-rc.d"

# fetched first: what is tested has no network; apt knows in which order
# logrotate's packages are installed, debootstrap does not

inside=(env -i HOME=/root LANG=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)

chroot "$dir" "${inside[@]}" bash -c \
    'apt-get -qq update && apt-get -qq -y install zsh man-db logrotate \
        && apt-get -qq -y --download-only install nginx curl /old/*.deb' \
    > "$deb/fetch.log" 2>&1 \
    || { tail -n 20 "$deb/fetch.log" >&2; exit 1; }
rm -f "$deb/fetch.log"

# a container that forbids to mount /proc has it bound

unshare --mount --pid --net --fork --kill-child -- bash -c '
    dir=$1
    shift
    mount --make-rprivate /
    ip link set lo up
    mount -t proc proc "$dir/proc" || mount --rbind /proc "$dir/proc"
    mount --rbind /dev "$dir/dev"
    mount -t tmpfs tmpfs "$dir/run"
    exec chroot "$dir" "$@" bash /root/inside' - "$dir" "${inside[@]}"
