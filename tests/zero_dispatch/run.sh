#!/usr/bin/env bash
# herring: shows that nothing on the hot path is dispatched at run time, and that this test would see it if it were.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/zero_dispatch/run.sh [compiler ...]      default: those of g++ and clang++ that are installed
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
for tool in objdump nm c++filt python3; do
    command -v $tool >/dev/null || { echo "SKIPPED: zero_dispatch: $tool is not installed (apt-get install binutils python3)"; exit 0; }
done
compilers=("$@")
if [ ${#compilers[@]} = 0 ]; then
    for compiler in g++ clang++; do command -v $compiler >/dev/null && compilers+=("$compiler"); done
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
result=0

# No jump tables: a switch shall not look like a call through a pointer.
build() { # compiler, source, program, flags...
    "$1" -std=c++20 -O2 -fno-jump-tables -I"$root/include" "$2" -o "$3" "${@:4}" -pthread
}
clean() { # what, program
    local out
    if out=$(python3 "$here/walk.py" "$2" --end herring::world::fail); then
        echo "zero_dispatch: $1: $(tail -n 1 <<<"$out")"
    else
        printf 'FAILED: zero_dispatch: %s:\n%s\n' "$1" "$out"
        result=1
    fi
}
caught() { # what, program, the line that must be there
    local out
    out=$(python3 "$here/walk.py" "$2" --end herring::world::fail)
    if [ $? = 1 ] && grep -qE "$3" <<<"$out"; then
        echo "zero_dispatch: $1: caught, as it must be: $(grep -m 1 -oE "$3" <<<"$out")"
    else
        printf 'FAILED: zero_dispatch: %s is not caught:\n%s\n' "$1" "$out"
        result=1
    fi
}

for compiler in "${compilers[@]}"; do
    # The test itself, with code of which it is known what is in it.
    if build "$compiler" "$here/control.cpp" "$work/control"; then clean "$compiler: control without dispatch" "$work/control"; else result=1; fi
    while read -r kind sign; do
        if build "$compiler" "$here/control.cpp" "$work/control_$kind" "-DCONTROL_$kind"; then
            caught "$compiler: control with $kind" "$work/control_$kind" "$sign"
        else
            result=1
        fi
    done <<'KINDS'
VTABLE INDIRECT: .*(call|jmp|br|blr)
POINTER INDIRECT: .*(call|br|blr)
TAIL INDIRECT: .*(jmp|br)
FUNCTION SYMBOL: .*std::_Function_
DYNAMIC_CAST SYMBOL: dynamic_cast
KINDS

    # The reducer: every source here that is named hot*.cpp has hot_* functions; HOT_CONTROL gives it a policy that calls
    # through a virtual function.
    for source in "$here"/hot*.cpp; do
        [ -f "$source" ] || continue
        name=$(basename "$source" .cpp)
        if build "$compiler" "$source" "$work/$name"; then clean "$compiler: $name" "$work/$name"; else result=1; fi
        if build "$compiler" "$source" "$work/${name}_control" -DHOT_CONTROL; then
            caught "$compiler: $name with a virtual policy" "$work/${name}_control" "INDIRECT: .*(call|jmp|br|blr)"
        else
            result=1
        fi
    done
done
exit $result
