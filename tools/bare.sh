#!/bin/bash

# Runs targets of make where nothing is but a bare Debian, git and make:
#
#     SUITE=bookworm tools/bare.sh DIRECTORY TARGET...
#
# DIRECTORY gets a system by debootstrap (minbase), with a clone of the commit
# of this repository in /root/clone; it is removed afterwards unless KEEP=1.
# Root makes one target after the other; `test`, of the files in $T if there are
# any, is then made again by a user who is not root.  Packages that were made
# (`deb`) are kept beside DIRECTORY, in a folder with the name of the suite.
# Needs root and debootstrap.  All processes end with this one.

set -eu

[ $# -ge 2 ] || { echo 'usage: tools/bare.sh DIRECTORY TARGET...' >&2; exit 2; }
dir=$(realpath -m "$1")
shift
targets=$*
top=$(cd "$(dirname "$0")/.." && pwd)
suite=${SUITE:-bookworm}
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
    'Origin: Debian' 'Label: Debian' 'Component: main' | head -n 1)

[ ! -e "$dir" ] || { echo "$dir is there already" >&2; exit 1; }
[ "${KEEP:-}" = 1 ] || trap 'rm -rf --one-file-system "$dir"' EXIT

mkdir -p "$(dirname "$dir")"
log=$(mktemp)
debootstrap --variant=minbase --include=git,make,ca-certificates \
    "$suite" "$dir" "$mirror" > "$log" 2>&1 \
    || { tail -n 20 "$log" >&2; rm -f "$log"; exit 1; }
rm -f "$log"
cp -L /etc/resolv.conf "$dir/etc/resolv.conf"
echo '127.0.0.1 localhost' > "$dir/etc/hosts"
git -c safe.directory='*' clone -q --no-hardlinks "$top" "$dir/root/clone"

cat > "$dir/root/run" <<END
set -e
mount -t tmpfs tmpfs /dev/shm 2>/dev/null || true
cd /root/clone
for target in $targets; do
    start=\$(date +%s)
    make \$target < /dev/null
    echo "bare, root: make \$target passed in \$((\$(date +%s) - start)) s"
done
ls /usr/sbin/policy-rc.d 2>/dev/null && { echo 'left: policy-rc.d'; exit 1; }

[[ ' $targets ' = *' test '* ]] || exit 0

# one who cannot install

useradd -m -d /srv/tester tester
cp -r /root/clone /srv/tester/clone
rm -rf /srv/tester/clone/build
chown -R tester: /srv/tester/clone
start=\$(date +%s)
su tester -c 'cd ~/clone && make test < /dev/null'
echo "bare, another user: make test passed in \$((\$(date +%s) - start)) s"
END

# The namespace takes its mounts and processes along when it ends.  A container
# that forbids to mount /proc has it bound.

# The system is a mount of its own: make test-deb makes a namespace inside.

unshare --mount --pid --fork --kill-child -- bash -c '
    mount --make-rprivate /
    mount --bind "$1" "$1"
    cd "$1"
    mount -t proc proc "$1/proc" || mount --rbind /proc "$1/proc"
    mount --rbind /dev "$1/dev"
    exec chroot . env -i HOME=/root LANG=C.UTF-8 TERM=dumb T="$2" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        bash /root/run' - "$dir" "${T:-}"

if [ -d "$dir/root/clone/build/deb" ]; then
    rm -rf "$(dirname "$dir")/$suite"
    cp -r "$dir/root/clone/build/deb" "$(dirname "$dir")/$suite"
fi
