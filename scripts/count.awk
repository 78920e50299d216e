# count.awk - "PASSED FAILED SKIPPED" of a log: TAP lines, busted's and unittest's closing lines, "N passed, N failed, N skipped".
# cmocka writes a skipped test as "not ok N # SKIP name".
/^([0-9]+: )?(not )?ok [0-9]+.*# *(SKIP|skip)/ { skipped++; next }
/^([0-9]+: )?ok [0-9]+/     { passed++; next }
/^([0-9]+: )?not ok [0-9]+/ { failed++; next }
/^[0-9]+ success(es)? \/ [0-9]+ failures? \/ [0-9]+ errors? \/ [0-9]+ pending/ {
  passed += $1; failed += $4 + $7; skipped += $10; next
}
/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { passed += $1; failed += $3; skipped += $5; next }
/^Ran [0-9]+ tests? in /    { ran = $2; next }
/^(OK|FAILED)( \(.*\))?$/ && ran != "" {
  bad = 0; left = 0; line = $0
  while (match(line, /(failures|errors|skipped)=[0-9]+/)) {
    split(substr(line, RSTART, RLENGTH), pair, "=")
    if (pair[1] == "skipped") left += pair[2]; else bad += pair[2]
    line = substr(line, RSTART + RLENGTH)
  }
  passed += ran - bad - left; failed += bad; skipped += left; ran = ""
}
END { print passed + 0, failed + 0, skipped + 0 }
