#!/bin/bash
# chroot.sh RELEASE COMMAND... - runs a command in a clean clone of this tree, inside a minimal Debian of that release:
#
#     scripts/chroot.sh 13 make run
#
# The image is made once by debootstrap, from the archive that apt uses here, as build-chroot/NAME (PHRUN_CHROOT names another
# directory); what the command installs stays in it, and removing the directory is all it takes to start afresh. The clone has
# what is committed. Mounts and processes live in namespaces of their own, so nothing of them outlives the command.
#
# The exit code is the command's, 1 when the image cannot be made, 2 for wrong usage, 77 where this machine cannot do it.
set -u
tree=$(cd "$(dirname "$0")/.." && pwd)
cache=${PHRUN_CHROOT:-$tree/build-chroot}

stop() { # CODE TEXT
  echo "chroot: $2" >&2
  exit "$1"
}

# The archive of Debian itself among the sources of apt.
archive() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 'Component: main' 2>/dev/null | head -1
}

make_image() { # NAME IMAGE: whole or not at all
  local from part=$2.tmp-$$ log=$2.log
  from=$(archive)
  [ -n "$from" ] || { apt-get update -q >/dev/null 2>&1 && from=$(archive); }
  [ -n "$from" ] || stop 1 "apt has no archive of Debian among its sources"
  echo "chroot: making an image of $1, once" >&2
  if ! debootstrap --variant=minbase --include=ca-certificates,make "$1" "$part" "$from" >"$log" 2>&1; then
    tail -3 "$log" >&2
    rm -rf --one-file-system "$part"
    stop 1 "debootstrap could not make an image of $1; $log has all it said"
  fi
  mv "$part" "$2" && rm -f "$log"
}

enter() { # IMAGE COMMAND...: in namespaces of its own
  local root=$1
  shift
  {
    mount -t proc proc "$root/proc" && mount -t sysfs -o ro sysfs "$root/sys" &&
      mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm" &&
      mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts" &&
      mount --bind "$root/dev/pts/ptmx" "$root/dev/ptmx"
  } 2>/dev/null || stop 77 "this machine does not permit the mounts that an image needs"
  exec chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 \
    TERM="${TERM:-dumb}" ${http_proxy:+http_proxy="$http_proxy"} /bin/sh -c 'cd /src/phrun && exec "$@"' sh "$@"
}

case ${1:-} in
12 | bookworm) name=bookworm ;;
13 | trixie) name=trixie ;;
*) stop 2 "the release must be 12 (bookworm) or 13 (trixie), got '${1:-}'; usage: chroot.sh RELEASE COMMAND..." ;;
esac
shift
[ $# -gt 0 ] || stop 2 "a command is missing; usage: chroot.sh RELEASE COMMAND..."
[ "$(id -u)" = 0 ] || stop 77 "only root may enter another system"
command -v debootstrap >/dev/null || stop 77 "debootstrap is missing: apt-get install debootstrap"
unshare --mount --pid --fork true 2>/dev/null || stop 77 "this machine does not permit namespaces, which an image needs"

mkdir -p "$cache" || exit 1
exec 9>"$cache/$name.lock"
flock 9
image=$cache/$name
eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
export http_proxy=${http_proxy:-}
[ -d "$image" ] || make_image "$name" "$image"
cp -L /etc/resolv.conf "$image/etc/resolv.conf"
rm -rf --one-file-system "$image/src"
git clone -q --no-hardlinks "$tree" "$image/src/phrun" || exit 1
[ -z "$(git -C "$tree" status --porcelain)" ] || echo "chroot: what is not committed is not in the clone" >&2
export -f enter stop
exec unshare --mount --pid --fork --kill-child bash -c 'enter "$@"' chroot "$image" "$@"
