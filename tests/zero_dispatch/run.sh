#!/usr/bin/env bash
# herring: shows that nothing on the hot path is dispatched at run time, and that this test would see it if it were.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/zero_dispatch/run.sh [compiler ...]      default: those of g++ and clang++ that are installed, with headers alone
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
for tool in objdump nm c++filt addr2line python3; do
    command -v $tool >/dev/null || { echo "SKIPPED: zero_dispatch: $tool is not installed (apt-get install binutils python3)"; exit 0; }
done
compilers=("$@") set_up=()
[ "${1-}" = --build ] && compilers=(none)
if [ ${#compilers[@]} = 0 ]; then
    for compiler in g++ clang++; do command -v $compiler >/dev/null && compilers+=("$compiler"); done
fi

cache=() && command -v ccache >/dev/null && cache=(ccache)

# No jump tables: a switch shall not look like a call through a pointer. With a line table, so that a call that was
# inlined is put down to whose it is.
if [ "${1-}" = --build ]; then # compiler, source, program, flags...
    read -ra libraries < <(sed -n 's|^// link: ||p' "$3" | paste -sd' ')
    [[ $3 != */hot*.cpp ]] || read -ra set_up <<<"${SET_UP-}"
    "${cache[@]}" "$2" -std=c++20 -O2 -g1 -fno-jump-tables -I"$root/include" -c "$3" -o "$4.o" "${@:5}" ${set_up[@]:+-DHERRING_SEPARATE} || exit 1
    exec "$2" "$4.o" -o "$4" "${set_up[@]}" -pthread "${libraries[@]}"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
result=0
has() { echo "#include <$1>" | "${compilers[0]}" -std=c++20 -E -x c++ - >/dev/null 2>&1; }
walk() { python3 "$here/walk.py" "$@" --end herring::world::fail --end herring::detail::failure_state::fail --end herring::detail::failure_detector::report_suspicion --end herring::detail::world_state::check_deadlock; }
clean() { # what, program, options of the walk...
    local out
    if out=$(walk "${@:2}"); then
        sed "s|^KNOWN: |zero_dispatch: $1: |; \$s|^|zero_dispatch: $1: |" <<<"$out"
    else
        printf 'FAILED: zero_dispatch: %s:\n%s\n' "$1" "$out"
        result=1
    fi
}
caught() { # what, program, the line that must be there, options of the walk...
    local out
    out=$(walk "$2" "${@:4}")
    if [ $? = 1 ] && grep -qE "$3" <<<"$out"; then
        echo "zero_dispatch: $1: caught, as it must be: $(grep -m 1 -oE "$3" <<<"$out")"
    else
        printf 'FAILED: zero_dispatch: %s is not caught:\n%s\n' "$1" "$out"
        result=1
    fi
}

# The reducer: every source here that is named hot*.cpp has hot_* functions, and options for the walk in lines that begin
# with "// walk: "; HOT_CONTROL gives it a policy that calls through a virtual function. "// link: " and "// needs: " say
# which library it is linked with, and which header must be there.
sources=()
for source in "$here"/hot*.cpp; do
    needs=$(sed -n 's|^// needs: ||p' "$source")
    if [ -n "$needs" ] && ! has "$needs"; then
        echo "SKIPPED: zero_dispatch: $(basename "$source" .cpp): <$needs> is not installed"
    else
        sources+=("$source")
    fi
done
# Each program is compiled with a virtual policy too; in the short run, which compiles set-up code once, only the first.
controlled() { [ -z "$SET_UP" ] || [ "$1" = "${sources[0]}" ]; }
# The test itself, with code of which it is known what is in it.
controls='VTABLE INDIRECT: .*(call|jmp|br|blr)
POINTER INDIRECT: .*(call|br|blr)
TAIL INDIRECT: .*(jmp|br)
FUNCTION SYMBOL: .*std::_Function_
DYNAMIC_CAST SYMBOL: dynamic_cast'

for compiler in "${compilers[@]}"; do
    # Where a compiler is named, as in the short run, set-up code is compiled once, not in each program.
    export SET_UP=
    if [ $# != 0 ]; then
        "${cache[@]}" "$compiler" -std=c++20 -O2 -g1 -fno-jump-tables -DHERRING_SEPARATE -I"$root/include" -x c++ -c "$root/include/herring/src.hpp" -o "$work/set_up.o" || exit 1
        SET_UP=$work/set_up.o
    fi
    # All programs first, the large ones before the small ones, as many at a time as there are cores.
    {
        for source in "${sources[@]}"; do
            echo "$source $work/$(basename "$source" .cpp)"
            ! controlled "$source" || echo "$source $work/$(basename "$source" .cpp)_control -DHOT_CONTROL -O1" # a call that nobody inlines
        done
        while read -r kind _; do echo "$here/control.cpp $work/control_$kind -DCONTROL_$kind"; done <<<"$controls"
        echo "$here/control.cpp $work/control"
    } | xargs -P "${JOBS:-$(nproc)}" -L 1 "$0" --build "$compiler" || { echo "FAILED: zero_dispatch: $compiler: does not build"; result=1; continue; }

    clean "$compiler: control without dispatch" "$work/control"
    while read -r kind sign; do caught "$compiler: control with $kind" "$work/control_$kind" "$sign"; done <<<"$controls"
    for source in "${sources[@]}"; do
        name=$(basename "$source" .cpp)
        read -ra options < <(sed -n 's|^// walk: ||p' "$source" | paste -sd' ')
        clean "$compiler: $name" "$work/$name" "${options[@]}"
        if [[ " ${options[*]}" =~ \ --known\ ([^ ]+)=([1-9]) ]]; then # one place more than is known
            fewer=("${options[@]/%${BASH_REMATCH[1]}=*/${BASH_REMATCH[1]}=$((BASH_REMATCH[2] - 1))}")
            caught "$compiler: $name with one place too many" "$work/$name" "INDIRECT: .* are known" "${fewer[@]}"
        fi
        ! controlled "$source" || caught "$compiler: $name with a virtual policy" "$work/${name}_control" "INDIRECT: .*(call|jmp|br|blr)[^,]*" "${options[@]}"
    done
done
exit $result
