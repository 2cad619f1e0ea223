#!/bin/bash

# Debian packages that the project needs:
#
#     tools/packages.sh install PACKAGE...
#     tools/packages.sh unpack DIRECTORY PACKAGE...
#
# install installs those that are missing; it needs root, or sudo.  None of
# them brings a service that Debian would start.
#
# unpack is for those that would (nginx, prometheus): unless all of them are
# installed, they are downloaded, and their files unpacked below DIRECTORY.
# Nothing is installed, and nothing has to be undone.

set -eu

command=${1:-}
shift || true

die() { echo "$*" >&2; exit 1; }


# which of these packages are not installed, nor provided by one that is: some
# libraries have another name in Debian 13

missing() {
    for p; do
        dpkg-query -W -f='${Status}' "$p" 2>/dev/null \
            | grep -q 'ok installed' \
            || dpkg-query -W -f='${Status}: ${Provides},\n' \
            | grep -q "ok installed:.* $p[ ,]" || echo "$p"
    done
}


# runs a command quietly; what it printed if it fails

quietly() {
    local log
    log=$(mktemp)
    "$@" > "$log" 2>&1 || { tail -n 20 "$log" >&2; rm -f "$log"; return 1; }
    rm -f "$log"
}


install() {
    local packages as_root=()

    mapfile -t packages < <(missing "$@")
    [ "${#packages[@]}" -gt 0 ] || return 0

    echo "installing: ${packages[*]}"

    if [ "$(id -u)" != 0 ]; then
        command -v sudo > /dev/null || die "Only root can install them:" \
            "apt-get install --no-install-recommends ${packages[*]}"
        as_root=(sudo)
    fi

    quietly "${as_root[@]}" apt-get update -qq
    quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq -o DPkg::Lock::Timeout=600 \
        --no-install-recommends "${packages[@]}"
}


unpack() {
    local to=$1 new p
    shift

    [ -n "$(missing "$@")" ] || return 0

    echo "unpacking: $*"
    new=$to.new
    rm -rf "$new"
    mkdir -p "$new/packages" "$to"

    # apt's own user cannot write here

    (cd "$new/packages" \
        && quietly apt-get -o APT::Sandbox::User=root download "$@") \
        || die "They could not be downloaded; as root: apt-get update"

    for p in "$new"/packages/*.deb; do
        dpkg-deb -x "$p" "$new"
    done

    rm -rf "$new/packages"
    cp -a "$new"/. "$to"
    rm -rf "$new"
}


case $command in
install|unpack)
    command -v apt-get > /dev/null || {
        echo "This is no Debian. Needed here, by Debian's names: $*"
        exit 0
    }

    # apt cannot run twice at a time
    exec 9< "$0"
    flock 9
    "$command" "$@"
    ;;
*)
    die "usage: tools/packages.sh install|unpack ..."
    ;;
esac
