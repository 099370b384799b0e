#!/usr/bin/env bash
# herring: what a translation unit with the reducer, tcp and shared_memory costs; fails when a count exceeds limits.txt.
# SPDX-License-Identifier: Apache-2.0
#
#   run.sh          counts, and holds them against the limits (both repeat exactly)
#   run.sh --json   also the CPU seconds at -O2 (best of 3) and the object's bytes, as one JSON line; for bench/run
#   run.sh --programs [TREE]   user seconds at -O2 (best of 3) and bytes of code of each program, headers alone and with set-up code
#                   compiled once, beside echo servers on Boost.Asio; TREE: another version, with each row's seconds in times of
#                   that version's hello
#
# own_lines: lines that remain of Herring's own headers after preprocessing, without blank ones; one that a macro of the
# system's (errno, say) breaks into several is one.
# instantiations: functions of namespace herring that the compiler emits at -O0, before any is inlined away.
# further_instantiations: as many again for one more reducer with another element type and rule.
# separate_own_lines, separate_instantiations: the same with HERRING_SEPARATE, where set-up code is compiled once for a program.
# functions: all that it emits, also those of the standard library and Asio that herring's code asks for.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
include=$(realpath "$here/../../include")
compiler=${CXX:-g++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-std=c++20 -I"$include" "$here/translation_unit.cpp")

# Best of three: user seconds, and bytes of code.
cost_of() { # flags and source...
    local best='' spent
    TIMEFORMAT=%U
    for _ in 1 2 3; do
        spent=$({ time "$compiler" -std=c++20 -O2 -c "$@" -o "$work/program.o" 2>"$work/errors" || echo failed >&2; } 2>&1 | tail -n 1)
        best=$(awk -v best="$best" -v t="$spent" 'BEGIN { print best == "" || t < best ? t : best }')
    done
    [ -s "$work/program.o" ] || { echo "- -"; return; }
    echo "$best $(size "$work/program.o" | awk 'NR == 2 { print $1 }')"
    rm "$work/program.o"
}
if [[ ${1:-} == --programs ]]; then
    trees=("$include") unit=
    [ -z "${2-}" ] || { trees=("$(realpath "$2/include")" "$include"); unit=first; }
    printf '%-46s%10s%10s%12s\n' program seconds "of hello" "code bytes"
    row() { # name, what cost_of prints
        local seconds=${2% *}
        [ -n "$unit" ] && [ "$unit" != first ] || unit=$seconds
        printf '%-46s%10s%10s%12s\n' "$1" "$seconds" "$(awk -v t="$seconds" -v u="$unit" 'BEGIN { if (t > 0) printf "%.2f", t / u; else print "-" }')" "${2#* }"
    }
    for tree in "${trees[@]}"; do
        [ ${#trees[@]} = 1 ] || echo "$tree"
        for program in "$here/../../examples/01_hello/hello.cpp" "$here"/programs/[!a]*.cpp; do
            row "$(basename "$program" .cpp)" "$(cost_of -I"$tree" "$program")"
            row "$(basename "$program" .cpp), set-up compiled once" "$(cost_of -I"$tree" -DHERRING_SEPARATE "$program")"
        done
        row "translation_unit" "$(cost_of -I"$tree" "$here/translation_unit.cpp")"
        row "translation_unit, a second type and rule" "$(cost_of -I"$tree" -DHERRING_COST_FURTHER "$here/translation_unit.cpp")"
    done
    for program in "$here"/programs/asio_*.cpp; do row "$(basename "$program" .cpp)" "$(cost_of "$program")"; done
    exit
fi

lines_of() { # file
    awk -v own="$include/" '
    /^# [0-9]/ { line = $2; split($0, part, "\""); mine = index(part[2], own) == 1; next }
    mine && NF && !seen[part[2], line]++ { ++n }
    { ++line }
    END { print n + 0 }' "$1"
}
"$compiler" -E "${flags[@]}" >"$work/preprocessed"
"$compiler" -E -DHERRING_SEPARATE "${flags[@]}" >"$work/separate"
all_lines=$(grep -vc '^#\|^[[:space:]]*$' "$work/preprocessed")
own_lines=$(lines_of "$work/preprocessed")
separate_own_lines=$(lines_of "$work/separate")
"$compiler" -O0 -c "${flags[@]}" -o "$work/counted.o"
# Mangled names of functions in herring::, also const members and lambdas in them.
functions=$(nm "$work/counted.o" | awk '$2 ~ /^[TtWw]$/ { ++n } END { print n + 0 }')
own() { nm "$1" | awk '$2 ~ /^[TtWw]$/ && $3 ~ /^_ZZ*N[KVRO]*7herring/ { ++n } END { print n + 0 }'; }
instantiations=$(own "$work/counted.o")
"$compiler" -O0 -DHERRING_COST_FURTHER -c "${flags[@]}" -o "$work/further.o"
further_instantiations=$(($(own "$work/further.o") - instantiations))
"$compiler" -O0 -DHERRING_SEPARATE -c "${flags[@]}" -o "$work/separate.o"
separate_instantiations=$(own "$work/separate.o")

if [[ ${1:-} == --json ]]; then
    best=
    TIMEFORMAT='%U %S'
    for _ in 1 2 3; do
        spent=$({ time "$compiler" -O2 -c "${flags[@]}" -o "$work/optimised.o"; } 2>&1 | tail -n 1)
        best=$(awk -v best="$best" '{ t = $1 + $2; print best == "" || t < best ? t : best }' <<<"$spent")
    done
    printf '{"suite":"cost","what":"translation unit","own_lines":%d,"all_lines":%d,"instantiations":%d,"functions":%d,"object_bytes":%d,"seconds":%.2f}\n' \
        "$own_lines" "$all_lines" "$instantiations" "$functions" "$(stat -c %s "$work/optimised.o")" "$best"
    exit
fi

status=0
while read -r name limit; do
    [[ -n $name && $name != \#* ]] || continue
    now=${!name}
    printf '%-24s%8d  limit %d\n' "$name" "$now" "$limit"
    if ((now > limit)); then
        echo "FAILED: $name grew beyond its limit in tests/cost/limits.txt" >&2
        status=1
    fi
done <"$here/limits.txt"
exit $status
