#!/usr/bin/env bash
# herring: tests that the documents name exist: `tests/FOLDER/NAME_test.cpp` «its test case», and any other `tests/...`.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/docs/check_named_tests.sh [PAGE ...]      default: docs/reliability.md docs/soak.md docs/security.md docs/security-in-depth.md
set -u
cd "$(dirname "$0")/../.." || exit 1
[ $# != 0 ] || set -- docs/reliability.md docs/soak.md docs/security.md docs/security-in-depth.md

failed=0 checked=0
complain() { echo "FAILED: $*"; failed=$((failed + 1)); }
for page in "$@"; do
    [ -f "$page" ] || { complain "$page is not there"; continue; }
    # Files.
    while IFS= read -r file; do
        checked=$((checked + 1))
        [ -e "$file" ] || complain "$page names $file, which is not there"
    done < <(grep -oE '`tests/[A-Za-z0-9_./-]+`' "$page" | tr -d '`' | sort -u)
    # Test cases: each «...» behind a file of tests, up to the next file or the end of the cell.
    while IFS=$'\t' read -r file name; do
        checked=$((checked + 1))
        [ -f "$file" ] || continue # said above
        grep -qF -- "TEST_CASE(\"$name\"" "$file" || complain "$page names the test «$name», which $file does not have"
    done < <(awk '
        {
            n = split($0, cells, "|")
            for (c = 1; c <= n; ++c) {
                file = ""
                rest = cells[c]
                while (match(rest, /`tests\/[A-Za-z0-9_.\/-]+_test\.cpp`|«[^»]*»/)) {
                    token = substr(rest, RSTART, RLENGTH)
                    rest = substr(rest, RSTART + RLENGTH)
                    if (token ~ /^`/) file = substr(token, 2, length(token) - 2)
                    else if (file != "") { gsub(/«|»/, "", token); print file "\t" token }
                }
            }
        }' "$page")
done
echo "named tests: $checked checked, $failed failed"
[ $failed = 0 ]
