#!/bin/bash
# deps.sh [test] [long] - installs the Debian packages that building (and testing) needs and that are missing. The names are those
# that Debian 12 and 13 share.
# Says nothing and costs some 50 ms when all are there.
set -u

packages=(cmake ninja-build gcc git pkg-config liblua5.4-dev lua5.4 lua-busted lua-dkjson lua-argparse libopenblas-dev
          liblapacke-dev libhdf5-dev hdf5-tools libcmocka-dev zlib1g-dev libssl-dev libedit-dev gnuplot-nox)
for kind in "$@"; do
  case $kind in
  test)
    packages+=(clang clang-format clang-tidy libclang-rt-dev cppcheck lua-check valgrind python3 python3-h5py python3-numpy
               chromium dataset-fashion-mnist)
    ;;
  long) packages+=(debootstrap) ;;
  *)
    echo "deps: no packages for '$kind'; there are: test long" >&2
    exit 2
    ;;
  esac
done

if ! command -v dpkg-query >/dev/null; then
  echo "deps: not a Debian system; these packages are expected under whatever name: ${packages[*]}" >&2
  exit 0
fi

# A package counts as there when its state is "installed" or another package provides it (pkgconf for pkg-config).
have=$(dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' | sed -n 's/^installed //p' | tr ', ' '\n\n')
missing=()
for p in "${packages[@]}"; do
  grep -qx "$p" <<<"$have" || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" = 0 ]; then
  as_root=()
elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
  as_root=(sudo)
else
  echo "deps: missing packages, and neither root nor sudo to install them: apt-get install ${missing[*]}" >&2
  exit 1
fi

echo "deps: installing ${missing[*]}" >&2
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! "${install[@]}" >"$log" 2>&1; then
  # The usual cause is a package list that is empty or old.
  "${as_root[@]}" apt-get update -q >"$log" 2>&1 && "${install[@]}" >"$log" 2>&1 || {
    tail -5 "$log" >&2
    echo "deps: apt-get could not install: ${missing[*]}" >&2
    exit 1
  }
fi
