#!/bin/bash
# parity.sh [DIR] - training, schedules and ops beside PyTorch (tests/parity), in the environment that peers.sh makes (default
# build/peers). Without it the comparison is pending, and nothing fails.
set -u
cd "$(dirname "$0")/.."
python=${1:-build/peers}/bin/python
if ! [ -x "$python" ]; then
  echo "parity: pending: it needs the environment of 'make peers'"
  exit 0
fi
failed=0
for name in schedules ops optimizers training; do
  echo "$name"
  "$python" "tests/parity/$name.py" || failed=1
done
exit $failed
