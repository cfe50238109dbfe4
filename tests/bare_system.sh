#!/usr/bin/env bash
# tests/bare_system.sh SUITE [DIRECTORY]: the README's two commands on a bare Debian (bookworm, trixie).
#
# Bootstraps SUITE below DIRECTORY (default /var/tmp/stockade-bare) with nothing but git, enters it by
# pivot_root in a private mount namespace (inside a plain chroot no user namespace can be made), clones
# this repository's HEAD there, and runs `./dev run`, `./dev run` again and `./dev test`, each timed.
# Needs root, debootstrap and a Debian mirror. What it bootstrapped stays for the next run; the clone and
# the packages installed by setup do not.
set -euo pipefail

suite=${1:?usage: tests/bare_system.sh SUITE [DIRECTORY]}
directory=${2:-/var/tmp/stockade-bare}
repository=$(git -C "$(dirname "$(readlink -f "$0")")" rev-parse --show-toplevel)
base=$directory/$suite
root=$directory/$suite.run

if [ ! -d "$base" ]; then
  mkdir -p "$directory"
  debootstrap --variant=minbase --include=git,ca-certificates "$suite" "$base.new" http://deb.debian.org/debian
  mv "$base.new" "$base"
fi
rm -rf --one-file-system "$root"
cp -a "$base" "$root"
# What a network asks for, a proxy's certificate included, is the machine's and not the system's.
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/machine-certificates.crt"
git clone -q --bare "$repository" "$root/stockade.git"

cat >"$root/inside.sh" <<'INSIDE'
set -euo pipefail
export NODE_EXTRA_CA_CERTS=/etc/ssl/machine-certificates.crt
export HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
timed() { local begin=$SECONDS; "$@"; echo "### $*: $((SECONDS - begin)) s"; }
cd "$(mktemp -d)"
git clone -q /stockade.git stockade
cd stockade
timed ./dev run
timed ./dev run
timed ./dev test
INSIDE

exec unshare --mount --propagation private --pid --fork --kill-child bash -euc '
  root=$1
  mount --bind "$root" "$root"
  cd "$root"
  mount -t proc proc proc
  mount -t tmpfs -o mode=755 dev dev
  mkdir dev/pts dev/shm
  mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
  mount -t tmpfs shm dev/shm
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  for i in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${i%:*}" "dev/${i#*:}"; done
  for i in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "dev/${i%:*}" c 1 "${i#*:}"; done
  mknod -m 666 dev/tty c 5 0
  mount -t sysfs -o ro sysfs sys
  mkdir -p old
  pivot_root . old
  umount -l /old
  exec bash /inside.sh
' bash "$root"
