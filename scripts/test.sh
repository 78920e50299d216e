#!/bin/bash
# test.sh [STAGE...] - everything that must hold, in stages: build c lua e2e lint asan tsan valgrind. Without names: all of these.
# Stage long (make test-long) runs the checks of tests/long.
# Each stage's output goes to build-logs/; what failed is shown. The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.."

all=(build c lua e2e lint asan tsan valgrind)
stages=("$@")
[ $# -gt 0 ] || stages=("${all[@]}")
jobs=$(nproc)
logs=build-logs
limit=900 # seconds a single check may take
mkdir -p "$logs"

export PHRUN=$PWD/build/phrun
export CMOCKA_MESSAGE_OUTPUT=TAP
export ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1

passed=0 failed=0 skipped=0
broken=()

# check NAME COMMAND... - runs it and adds up what it reports. A command that reports no counts is one test; exit 77 is a skip.
check() {
  local name=$1 log="$logs/${1//\//.}.log" start=$SECONDS rc p f s
  shift
  timeout -k 10 $limit "$@" >"$log" 2>&1 </dev/null
  rc=$?
  read -r p f s < <(awk -f scripts/count.awk "$log")
  if [ $rc = 77 ] && [ $((p + f)) = 0 ]; then
    s=$((s > 0 ? s : 1))
  elif [ $rc != 0 ]; then
    f=$((f > 0 ? f : 1)) # a crash, a time-out, a build error
  elif [ $((p + f + s)) = 0 ]; then
    p=1
  fi
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  if [ "$f" = 0 ]; then
    printf '%-28s %4d passed, %d skipped  (%d s)\n' "$name" "$p" "$s" $((SECONDS - start))
    [ "$s" = 0 ] || grep -iE '(# *skip|pending|skipped)' "$log" | head -5 | sed 's/^/    /'
    return 0
  fi
  printf '%-28s %4d passed, %d FAILED  (%d s, exit %d)\n' "$name" "$p" "$f" $((SECONDS - start)) $rc
  broken+=("$name: $log")
  { grep -E '^([0-9]+: )?not ok|FAILED|rror:|ERROR|Failure|WARNING: ' "$log" || true; } | head -30 | sed 's/^/    /'
  tail -15 "$log" | sed 's/^/    | /'
  return 1
}

# configure_and_build DIR TARGETS -- CMAKE OPTIONS: every build is one check.
configure_and_build() {
  local dir=$1 targets=$2
  shift 3
  check "build/$dir" bash -c 'cmake -S . -B "$0" -G Ninja "${@:2}" && ninja -C "$0" -j"$(nproc)" -k 20 $1' "$dir" "$targets" "$@"
}

run_ctest() { # DIR [PATTERN]
  ctest --test-dir "$1" -V -j"$jobs" --output-on-failure ${2:+-R "$2"} --no-tests=error
}

# C tests that start threads themselves or through a plan.
threaded() { grep -lE 'ph_pool_new|ph_plan_new' tests/c/test_*.c | sed 's|.*/\(.*\)\.c|\1|'; }

stage_build() { configure_and_build build all -- -DCMAKE_BUILD_TYPE=Release -DPHRUN_WERROR=ON; }
stage_c() { check c bash -c 'run_ctest build'; }
stage_lua() { check lua "$PHRUN" test; }
stage_e2e() {
  local file
  for file in tests/e2e/*.sh tests/e2e/*.py; do
    [ -x "$file" ] && check "e2e/$(basename "$file")" "$file"
  done
}
stage_lint() {
  local file
  for file in tests/lint/*.sh tests/lint/*.py; do
    [ -x "$file" ] && check "lint/$(basename "$file")" "$file"
  done
}
stage_asan() {
  configure_and_build build-asan all -- -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPHRUN_SANITIZE=ON || return
  check asan/c bash -c 'run_ctest build-asan'
  PHRUN=$PWD/build-asan/phrun check asan/lua build-asan/phrun test
}
stage_tsan() {
  local tests
  tests=$(threaded)
  configure_and_build build-tsan "$(tr '\n' ' ' <<<"$tests")" -- -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPHRUN_TSAN=ON || return
  check tsan/c bash -c 'run_ctest build-tsan "$0"' "^c\\.($(tr '\n' '|' <<<"$tests" | sed 's/|$//'))\$"
}
# Reads of uninitialised memory, which the sanitizers do not see: parsers and readers.
stage_valgrind() {
  local name
  for name in mem tensor ir idx; do
    [ -x build/test_$name ] &&
      PHRUN_KERNELS=portable check "valgrind/$name" valgrind -q --error-exitcode=9 --exit-on-first-error=yes build/test_$name
  done
}
# Each check has a budget of its own; tests/long/README.md.
stage_long() {
  local file limit
  for file in tests/long/*.sh tests/long/*.py; do
    [ -x "$file" ] || continue
    limit=$(sed -n 's/^# budget: \([0-9]*\)$/\1/p' "$file")
    check "long/$(basename "$file")" "$file"
  done
}
export -f run_ctest
export jobs

for stage in "${stages[@]}"; do
  if ! declare -F "stage_$stage" >/dev/null; then
    echo "test: no stage '$stage'; there are: ${all[*]} long" >&2
    exit 2
  fi
  "stage_$stage"
done

printf '\n%d s\n' $SECONDS
for name in "${broken[@]}"; do
  echo "failed: $name"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
