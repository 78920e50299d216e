#!/bin/bash
# clang-tidy over core and vm with the checks of .clang-tidy; needs compile_commands.json in build/ (or $BUILD).
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
[ -f "$build/compile_commands.json" ] || { echo "tidy: build first"; exit 77; }
out=$(git ls-files -z 'core/*.c' 'vm/*.c' ':!core/kernels/isa_*.c' |
  xargs -0 -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option 2>/dev/null)
rc=$?
grep -vE '^[0-9]+ warnings? (generated|treated as)' <<<"$out"
exit $rc
