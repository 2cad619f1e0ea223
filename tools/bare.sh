#!/bin/bash

# Runs targets of make where nothing is but a bare Debian, git and make:
#
#     SUITE=bookworm ARCH=arm64 tools/bare.sh DIRECTORY TARGET...
#
# DIRECTORY gets a system by debootstrap (minbase), with a clone of the commit
# of this repository in /root/clone; it is removed afterwards unless KEEP=1.
# Root makes one target after the other; `test`, of the files in $T if there are
# any, is then made again by a user who is not root.  With BARE_USER=NAME, root
# makes `deps` alone, and NAME the targets, in a clone of its own.  Packages
# that root made (`deb`) are kept beside DIRECTORY, in a folder named SUITE, or
# SUITE-ARCH.  Needs root and debootstrap.  All processes end with this one.
#
# ARCH is another machine's: its programs run under qemu (qemu-user-static).
# The kernel is asked to, as systemd would, unless it does so already.  If this
# machine has a cross compiler of the same Debian, gcc there calls cc1 and as of
# it, and perl is this machine's: emulated, they take ten times as long.  Leaks
# are not looked for, as qemu has no ptrace().

set -eu

[ $# -ge 2 ] || { echo 'usage: tools/bare.sh DIRECTORY TARGET...' >&2; exit 2; }
dir=$(realpath -m "$1")
shift
targets=("$@")
top=$(cd "$(dirname "$0")/.." && pwd)
suite=${SUITE:-bookworm}
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
    'Origin: Debian' 'Label: Debian' 'Component: main' | head -n 1)

[ ! -e "$dir" ] || { echo "$dir is there already" >&2; exit 1; }

registered=
done_with() {
    [ "${KEEP:-}" = 1 ] || rm -rf --one-file-system "$dir"
    [ -z "$registered" ] || echo -1 > "$registered"
}
trap done_with EXIT

mkdir -p "$(dirname "$dir")"

if [ -n "${ARCH:-}" ]; then
    cpu=$(dpkg-architecture -a "$ARCH" -q DEB_HOST_GNU_CPU)
    formats=/proc/sys/fs/binfmt_misc
    [ -e $formats/register ] || mount -t binfmt_misc binfmt_misc $formats

    if [ ! -e "$formats/qemu-$cpu" ]; then
        cat "/usr/lib/binfmt.d/qemu-$cpu.conf" > $formats/register
        registered=$formats/qemu-$cpu
    fi
fi

log=$(mktemp)
debootstrap ${ARCH:+--arch="$ARCH"} --variant=minbase \
    --include=git,make,ca-certificates \
    "$suite" "$dir" "$mirror" > "$log" 2>&1 \
    || { tail -n 20 "$log" >&2; rm -f "$log"; exit 1; }
rm -f "$log"
cp -L /etc/resolv.conf "$dir/etc/resolv.conf"
echo '127.0.0.1 localhost' > "$dir/etc/hosts"
git -c safe.directory='*' clone -q --no-hardlinks "$top" "$dir/root/clone"

# Of this machine's programs, the root has the loader and the libraries, in
# folders that it does not use, perl over its own, and /cross.  cc1 has its own
# headers below gcc-cross.

lent=()
compiler=$(command -v "${cpu:+$cpu-linux-gnu-gcc}" || true)
[ "$suite" = "$(. /etc/os-release && echo "$VERSION_CODENAME")" ] || compiler=

if [ -n "$compiler" ]; then
    loader=$(ldd /usr/bin/perl | grep -o '/[^ ]*/ld-[^ ]*')
    lent=("$(dirname "$(realpath "$loader")")" /usr/bin/perl)
    mkdir -p "$dir/cross" "$dir$(dirname "$loader")" "$dir${lent[0]}"
    ln -s "$(realpath "$loader")" "$dir$loader"
    ln -s gcc "$dir/usr/lib/gcc-cross"

    for tool in cc1 as; do
        cp -L "$("$compiler" -print-prog-name="$tool")" "$dir/cross/$tool"
    done
fi

cat > "$dir/root/run" <<'END'
set -e
mount -t tmpfs tmpfs /dev/shm 2>/dev/null || true

targets() {
    local user=$1 clone=$2 start

    shift 2
    for target; do
        start=$(date +%s)
        su "$user" -c "cd $clone && make $target < /dev/null"
        echo "bare, $user: make $target passed in $(($(date +%s) - start)) s"
    done
}

user=$1
shift
if [ -n "$user" ]; then
    again=$*
    set -- deps
elif [[ " $* " = *' test '* ]]; then
    user=tester again=test
fi

targets root /root/clone "$@"
ls /usr/sbin/policy-rc.d 2>/dev/null && { echo 'left: policy-rc.d'; exit 1; }

# one who cannot install

[ -n "$user" ] || exit 0
useradd -m -d "/srv/$user" "$user"
cp -r /root/clone "/srv/$user/clone"
rm -rf "/srv/$user/clone/build"
chown -R "$user:" "/srv/$user/clone"
targets "$user" "/srv/$user/clone" $again
END

# The namespace takes its mounts and processes along when it ends.  A container
# that forbids to mount /proc has it bound.

# The system is a mount of its own: make test-deb makes a namespace inside.

unshare --mount --pid --fork --kill-child -- bash -c '
    dir=$1 n=$2
    shift 2
    mount --make-rprivate /
    mount --bind "$dir" "$dir"
    for f in "${@:1:n}"; do mount --bind "$f" "$dir$f"; done
    shift "$n"
    cd "$dir"
    mount -t proc proc "$dir/proc" || mount --rbind /proc "$dir/proc"
    mount --rbind /dev "$dir/dev"
    exec chroot . "$@"' - "$dir" ${#lent[@]} "${lent[@]}" \
    env -i HOME=/root LANG=C.UTF-8 TERM=dumb T="${T:-}" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        ${compiler:+COMPILER_PATH=/cross} ${cpu:+ASAN_OPTIONS=detect_leaks=0} \
        bash /root/run "${BARE_USER:-}" "${targets[@]}"

if [ -d "$dir/root/clone/build/deb" ]; then
    packages=$(dirname "$dir")/$suite${ARCH:+-$ARCH}
    rm -rf "$packages"
    cp -r "$dir/root/clone/build/deb" "$packages"
fi
