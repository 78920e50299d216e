#!/bin/bash
# Words that no tracked file may hold: paths of one machine, unfinished-work marks, and phrases that are not English. Every hit is
# a fault. (The brackets keep this file clean.) Left out are texts that stay equal to the byte: locked specs and what is generated
# from them, golden files, corpora.
cd "$(dirname "$0")/../.." || exit 1
found=0
forbid() { # PATTERN WHY [PATHSPEC...]
  local pattern=$1 why=$2
  shift 2
  if git grep -nIP "$pattern" -- "$@" ':!tests/fuzz/corpus'; then
    echo "  ^ $why"
    found=1
  fi
}
prose=('*.c' '*.h' '*.lua' '*.md' '*.sh' '*.py' '*.txt' ':!specs/e6*.lua' ':!experiments' ':!tests/golden')
strings=('*.c' '*.h' '*.lua' ':!tests/golden')

forbid '(^|[^[:alnum:]_.])[/](work|home|root)/' 'a path of one machine' .
forbid '\b(TOD[O]|FIXM[E]|XX[X])\b' 'unfinished work is finished or left out' .

forbid '(?i)\bcan[ ]not\b' 'write "cannot"' "${prose[@]}"
forbid '(?i)\bfor[ ]ever\b' 'write "permanently" or "forever"' "${prose[@]}"
forbid '(?i)(?<!\bthere )\b(is|are|was|were|be) no[ ](?!longer\b|more\b|less\b|later\b|earlier than\b)[a-z%]' 'write "is not a"; or "there is no"' "${prose[@]}"
forbid '(?i)\b(is|are|was|were|been) tol[d]\b(?! apart)' 'a program reports, prints, lists or shows' "${prose[@]}"
forbid '^[^"]*("[^"]*"[^"]*)*"[^"]*\b(is|are) neede[d]\b' 'a message says "must be WHAT, got VALUE"' "${strings[@]}"
forbid ',[ ]\*/$' 'a comment belongs to one statement: end the sentence' '*.c' '*.h'
exit $found
