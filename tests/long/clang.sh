#!/bin/bash
# Built by clang: without a warning, with all C and Lua tests, and every run has the bits that GCC's build gives it.
# budget: 1800
set -eu
cd "$(dirname "$0")/../.."
gcc=$PWD/build/phrun clang=$PWD/build-clang/phrun
[ -x "$gcc" ] || { echo "clang: build first"; exit 77; }

CC=clang cmake -S . -B build-clang -G Ninja -DCMAKE_BUILD_TYPE=Release -DPHRUN_WERROR=ON
ninja -C build-clang
"$clang" --version -v | grep -i 'compiler .*clang'
ctest --test-dir build-clang -V --output-on-failure --no-tests=error
PHRUN=$clang "$clang" test

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$gcc" run specs/quick.lua --out "$out/gcc" -q
"$clang" run specs/quick.lua --out "$out/clang" -q
"$clang" verify "$out/clang" --against "$out/gcc"
PHRUN=$clang tests/e2e/bits.py
