#!/usr/bin/env bash
# herring: where the time of the last tests/run went: by part, by program, by header. Printed by tests/run --times.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 1
times=build/times
[ -s "$times" ] || { echo "tests/run --times: tests/run has not run here yet" >&2; exit 2; }

echo "Parts                        s   s of CPU"
awk -F'\t' '$1 == "stage" { printf "  %-22s %6d %10d\n", $2, $3, $4; s += $3; cpu += $4 } END { printf "  %-22s %6s %10d\n", "all, two at a time", "", cpu }' "$times"

# An object's name has its program: CMakeFiles/PROGRAM.dir/...; which program a test is of, the build says.
echo
echo "Programs: s of CPU       compile    link     run     all   (those of 5 and more)"
awk -F'\t' '
    function add(build, program, kind, cpu) { all[build " " program] += cpu; part[build " " program, kind] += cpu }
    $1 == "compile" || $1 == "link" {
        program = $3
        if (sub(/.*CMakeFiles\//, "", program)) sub(/\.dir\/.*/, "", program)
        add($2, program, $1, $5)
    }
    $1 == "run" {
        if (!($2 in known)) {
            known[$2] = 1
            file = "build/test-" $2 "/tested.txt"
            while ((getline line <file) > 0) { split(line, word, " "); of[$2, word[1]] = word[2] }
            close(file)
        }
        add($2, ($2, $3) in of ? of[$2, $3] : $3, $1, $5)
    }
    END {
        for (p in all) if (all[p] >= 5) {
            split(p, word, " ")
            printf "  %-10s %-28s %7.1f %7.1f %7.1f %7.1f\n", word[1], word[2], part[p, "compile"], part[p, "link"], part[p, "run"], all[p]
        }
    }' "$times" | sort -k6 -rn
echo
echo "Headers, alone: s of CPU   (the first 20 of $(awk -F'\t' '$1 == "header"' "$times" | wc -l), which take $(awk -F'\t' '$1 == "header" { s += $5 } END { printf "%d", s }' "$times"))"
awk -F'\t' '$1 == "header" { printf "  %-12s %-52s %6.2f\n", $2, $3, $5 }' "$times" | sort -k3 -rn | head -n 20
