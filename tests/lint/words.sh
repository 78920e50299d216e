#!/bin/bash
# Words that no tracked file may hold: paths of one machine, unfinished-work marks. (The brackets keep this file clean.)
cd "$(dirname "$0")/../.." || exit 1
found=0
forbid() { # PATTERN WHY
  if git grep -nIE "$1" -- . ':!tests/fuzz/corpus'; then
    echo "  ^ $2"
    found=1
  fi
}
forbid '(^|[^[:alnum:]_.])[/](work|home|root)/' 'a path of one machine'
forbid '\b(TOD[O]|FIXM[E]|XX[X])\b' 'unfinished work is finished or left out'
exit $found
