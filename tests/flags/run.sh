#!/usr/bin/env bash
# herring: translation units of one program that were compiled with different -m flags, another version, or set-up code apart, keep
# their own code, and no world passes between them.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/flags/run.sh [compiler ...]      default: those of g++ and clang++ that are installed
#
# A linker merges inline functions of one name: with different code, whichever is first would serve both. Looked at: the
# program, linked in both orders. Functions of the standard library and of Asio are merged all the same.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: flags: this machine is no x86-64"; exit 0; }
for tool in objdump nm c++filt; do
    command -v $tool >/dev/null || { echo "SKIPPED: flags: $tool is not installed (apt-get install binutils)"; exit 0; }
done
compilers=("$@")
if [ ${#compilers[@]} = 0 ]; then
    for compiler in g++ clang++; do command -v $compiler >/dev/null && compilers+=("$compiler"); done
fi
cache=() && command -v ccache >/dev/null && cache=(ccache)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
result=0
fail() { echo "FAILED: flags: $*"; result=1; }

# Herring's functions with an instruction that only AVX has, whose names do not say AVX2.
avx_without_name() {
    objdump -d --no-show-raw-insn "$1" | c++filt | awk '
        /^[0-9a-f]+ <.*>:$/ { name = $0; sub(/^[0-9a-f]+ </, "", name); sub(/>:$/, "", name) }
        $2 ~ /^v[a-z0-9]+$/ && $2 !~ /^ver[rw]$/ && name ~ /(^|[^a-z_:])herring::/ && name !~ /herring::v[0-9_]+_avx2_fma::/ { print name }' | sort -u
}
# Names of Herring's functions that both objects have for the linker to merge, but for those of the types that are one, and for what a
# process has once.
merged() {
    for object in "$@"; do nm -C --defined-only "$object" | sed -nE 's/^[0-9a-f]+ [WVTu] //p' | grep 'herring::' | sort -u; done |
        sort | uniq -d | grep -vE 'herring::(error|status|failure|process_wide::[a-z_]+$|to_string\(herring::errc\))|for herring::error'
}

for compiler in "${compilers[@]}"; do
    flags=(-std=c++20 -Wall -Wextra -Werror -Iinclude -Itests)
    rm -f "$work"/*.o
    for source in plain fast main; do
        own=()
        [ $source = fast ] && own=(-mavx2 -mfma)
        "${cache[@]}" "$compiler" "${flags[@]}" -O2 "${own[@]}" -c tests/flags/$source.cpp -o "$work/$source.o" &
    done
    wait
    ls "$work"/{plain,fast,main}.o >/dev/null || { fail "$compiler: does not compile"; continue; }
    found=$(merged "$work/plain.o" "$work/fast.o")
    [ -z "$found" ] || fail "$compiler: $(wc -l <<<"$found") functions of Herring have one name with both flags, the first: $(head -n 1 <<<"$found")"
    for order in "plain fast" "fast plain"; do
        # shellcheck disable=SC2086
        "$compiler" "$work/main.o" $(printf "$work/%s.o " $order) -o "$work/program" -pthread || { fail "$compiler: $order: does not link"; continue; }
        found=$(avx_without_name "$work/program")
        [ -z "$found" ] || fail "$compiler: $order: plain code has AVX in $(wc -l <<<"$found") functions, the first: $(head -n 1 <<<"$found")"
        objdump -d --no-show-raw-insn "$work/program" | grep -q 'avx2_fma.*>:$' || fail "$compiler: $order: no function is named avx2_fma"
        if ! grep -qw avx2 /proc/cpuinfo; then
            echo "SKIPPED: flags: this machine has no AVX2; the program was not run"
        elif ! out=$("$work/program" 2>&1); then
            fail "$compiler: $order: the program says: $out"
        else
            echo "flags: $compiler: $order: each keeps its code, and both have the same bits"
        fi
    done
    # A world that passes between translation units that differ does not link, and both names are shown.
    printf '%s\n' '#include <herring/world.hpp>' 'void train(herring::world&);' 'int main() { herring::world alone; train(alone); }' >"$work/caller.cpp"
    printf '%s\n' '#include <herring/world.hpp>' 'void train(herring::world&) {}' >"$work/callee.cpp"
    mkdir -p "$work/later/herring/base"
    sed -E 's/(VERSION_MINOR) .*/\1 999/' include/herring/base/version.hpp >"$work/later/herring/base/version.hpp"
    "$compiler" "${flags[@]}" -c "$work/caller.cpp" -o "$work/caller.o" || fail "$compiler: world.hpp does not compile"
    while read -r name own; do
        # shellcheck disable=SC2086
        "$compiler" $own "${flags[@]}" -c "$work/callee.cpp" -o "$work/callee.o" || fail "$compiler: $own: world.hpp does not compile"
        if out=$("$compiler" "$work/caller.o" "$work/callee.o" -o "$work/mixed" -pthread 2>&1); then
            fail "$compiler: a world passes to code compiled with $own"
        elif ! c++filt <<<"$out" | grep -q 'train(herring::v[0-9]*_[0-9]*::world&)' || ! nm -C "$work/callee.o" | grep -q "train(herring::$name::world&)"; then
            fail "$compiler: $own: the linker says: $out"
        else
            echo "flags: $compiler: a world does not pass to code compiled with ${own//$work\/}"
        fi
    done <<<"v[0-9]*_[0-9]*_avx2_fma -mavx2 -mfma
v[0-9]*_[0-9]*_separate -DHERRING_SEPARATE
v[0-9]*_999 -I$work/later"
done
exit $result
