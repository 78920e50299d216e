#!/bin/bash
# The releases of Debian that the README names, but for the one that runs here: from a clean clone to the last test.
# budget: 7200
set -u
cd "$(dirname "$0")/../.." || exit 1
here=$(sed -n 's/^VERSION_ID="\(.*\)"$/\1/p' /etc/os-release)
for release in 12 13; do
  [ "$release" = "$here" ] || scripts/chroot.sh "$release" sh -c 'make run && make test' || exit
done
