#!/bin/bash
cd "$(dirname "$0")/../.." || exit 1
dirs=()
for d in lua specs tests/lua tests/e2e; do
  [ -d "$d" ] && dirs+=("$d")
done
exec luacheck --quiet --no-color "${dirs[@]}"
