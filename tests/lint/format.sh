#!/bin/bash
# C sources are formatted by clang-format (make format).
cd "$(dirname "$0")/../.." || exit 1
git ls-files -z '*.c' '*.h' | xargs -0 clang-format --dry-run -Werror --ferror-limit=3
