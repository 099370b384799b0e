#!/usr/bin/env bash
# herring: fuzz targets: decoders of bytes from outside, and the whole control protocol, against any input.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/fuzz/run.sh [TARGET ...]                 each by clang++ with sanitizers, else by g++: the corpus, then some seconds
#   tests/fuzz/run.sh --full [TARGET ...]          each by libFuzzer for 60 s (HERRING_FUZZ_SECONDS), with what it found kept
#   tests/fuzz/run.sh --corpus                     writes tests/fuzz/corpus anew by the encoders
#
# The short run begins with the same seed always, so that a change is all that is new. What ends a target lies in build/fuzz/crash-*;
# «build/fuzz/TARGET-clang++ FILE» runs it again.
set -u
cd "$(dirname "$0")/../.." || exit 1
flags=(-std=c++20 -O1 -g1 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -Iinclude -Itests)
sanitize=(-fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all)
export ASAN_OPTIONS=abort_on_error=1:detect_leaks=1 UBSAN_OPTIONS=abort_on_error=1:print_stacktrace=1
cache=()
command -v ccache >/dev/null && cache=(ccache)
have() { command -v "$1" >/dev/null; }
mkdir -p build/fuzz

if [ "${1-}" = --corpus ]; then
    "${cache[@]}" g++ "${flags[@]}" tests/fuzz/make_corpus.cpp -o build/fuzz/make_corpus -pthread || exit 1
    rm -rf tests/fuzz/corpus
    exec build/fuzz/make_corpus tests/fuzz/corpus
fi
full=0
if [ "${1-}" = --full ]; then full=1; shift; fi
targets=("$@")
if [ ${#targets[@]} = 0 ]; then for file in tests/fuzz/*_fuzz.cpp; do targets+=("$(basename "$file" _fuzz.cpp)"); done; fi

result=0
# Not optimised, a third of the time of what libFuzzer gets.
object() { "${cache[@]}" "$compiler" "${flags[@]}" "${sanitize[@]}" -O0 -c "tests/fuzz/$1.cpp" -o "build/fuzz/$1-$compiler.o"; }
short() { # target
    local target=$1 out
    if ! object "${target}_fuzz" || ! "$compiler" "${sanitize[@]}" "build/fuzz/${target}_fuzz-$compiler.o" "build/fuzz/loop-$compiler.o" -o "build/fuzz/$target-$compiler" -pthread; then
        echo "FAILED: fuzz: $compiler: ${target}_fuzz.cpp does not compile"
        return 1
    fi
    if out=$("build/fuzz/$target-$compiler" --seconds 2 --keep "build/fuzz/crash-$target-$compiler" "tests/fuzz/corpus/$target" 2>&1); then
        echo "fuzz: $out"
    else
        printf 'FAILED: fuzz: %s; its input: build/fuzz/crash-%s\n%s\n' "$target" "$target-$compiler" "$(head -n 40 <<<"$out")"
        return 1
    fi
}
long() { # target
    local target=$1
    "${cache[@]}" clang++ "${flags[@]}" "${sanitize[@]}" -fsanitize=fuzzer "tests/fuzz/${target}_fuzz.cpp" \
        -o "build/fuzz/$target-libfuzzer" -pthread || { echo "FAILED: fuzz: ${target}_fuzz.cpp does not compile"; return 1; }
    mkdir -p "build/fuzz/corpus-$target"
    if "build/fuzz/$target-libfuzzer" -max_total_time="${HERRING_FUZZ_SECONDS-60}" -max_len=4096 -rss_limit_mb=1024 -timeout=20 \
        -artifact_prefix="build/fuzz/crash-$target-" "build/fuzz/corpus-$target" "tests/fuzz/corpus/$target" >"build/fuzz/$target.log" 2>&1; then
        echo "fuzz: $target: $(grep -E '^Done' "build/fuzz/$target.log")"
    else
        printf 'FAILED: fuzz: %s: build/fuzz/%s.log, which ends:\n%s\n' "$target" "$target" "$(tail -n 40 "build/fuzz/$target.log")"
        return 1
    fi
}
how=short
if [ $full = 1 ]; then
    how=long
    if ! have clang++ || ! echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
        clang++ -fsanitize=fuzzer -x c++ - -o build/fuzz/probe 2>/dev/null; then
        echo "SKIPPED: fuzz: no clang++ with libFuzzer (apt-get install clang)"
        exit 0
    fi
fi

compiler=clang++
if ! have clang++; then
    echo "SKIPPED: fuzz: sanitizers: no clang++ (apt-get install clang)"
    compiler=g++ sanitize=()
fi
[ $full = 1 ] || object loop || { echo "FAILED: fuzz: $compiler: loop.cpp does not compile"; exit 1; }
for target in "${targets[@]}"; do # as many at once as there are cores; what they print comes in their order
    while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-$(nproc)}" ]; do wait -n; done
    "$how" "$target" >"build/fuzz/$target.out" 2>&1 &
done
wait
for target in "${targets[@]}"; do
    cat "build/fuzz/$target.out"
    grep -qE ' mutated$|: Done ' "build/fuzz/$target.out" || result=1 # it failed, or did not come to its end
done
exit $result
