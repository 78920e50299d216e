#!/bin/bash
# Five of the thirty kills of tests/torture/kill.py.
exec /usr/bin/python3 "$(dirname "$0")/../torture/kill.py" --kills 5 --seed 1
