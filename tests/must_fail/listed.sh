#!/usr/bin/env bash
# herring: every [HRG-nnn] of the headers is in docs/errors.md and has a must-fail case, and the reverse; every errc too.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/../.." || exit 1
in_headers=$(grep -rhE --include='*.hpp' --include='*.cuh' '"\[HRG-[A-Z][0-9]{2}\]' include | grep -oE 'HRG-[A-Z][0-9]{2}' | sort -u)
in_docs=$(grep -oE '^#### HRG-[A-Z][0-9]{2}' docs/errors.md | cut -c6- | sort)
in_cases=$(find tests/must_fail -name '*.cpp' -printf '%f\n' | grep -oE '^[A-Z][0-9]{2}_' | sed 's/^/HRG-/; s/_$//' | sort -u)
codes=$(sed -n '/^enum class errc/,/^};/p' include/herring/base/error.hpp | grep -oE '^    [a-z_]+' | tr -d ' ' | grep -vx ok | sort)
codes_in_docs=$(grep -oE '^\| `[a-z_]+` \|' docs/errors.md | tr -d '|` ' | sort)
result=0
compare() { # name of a, a, name of b, b
    local missing
    missing=$(comm -23 <(echo "$2") <(echo "$4" | sort -u))
    if [ -n "$missing" ]; then
        echo "FAILED: in $1 and not in $3:" $missing
        result=1
    fi
}
compare include/ "$in_headers" docs/errors.md "$in_docs"
compare docs/errors.md "$in_docs" include/ "$in_headers"
compare include/ "$in_headers" tests/must_fail/ "$in_cases"
compare tests/must_fail/ "$in_cases" include/ "$in_headers"
compare error.hpp "$codes" docs/errors.md "$codes_in_docs"
compare docs/errors.md "$codes_in_docs" error.hpp "$codes"
doubled=$(echo "$in_docs" | uniq -d)
[ -n "$doubled" ] && { echo "FAILED: twice in docs/errors.md:" $doubled; result=1; }
[ $result = 0 ] && echo "listed: $(echo "$in_headers" | wc -l) identifiers and $(echo "$codes" | wc -l) codes, each documented and tested"
exit $result
