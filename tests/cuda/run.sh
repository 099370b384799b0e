#!/usr/bin/env bash
# herring: what is for GPUs, with nothing but nvcc and doctest's header: compiled, its code looked at, and run where there is a GPU.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/cuda/run.sh              HERRING_DOCTEST_INCLUDE: the folder that has doctest/doctest.h, if it is not a system header
#
# Code for sm_90, and PTX for what is newer. Programs lie in build/cuda.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 1
command -v nvcc >/dev/null || { echo "SKIPPED: cuda: no nvcc (CUDA toolkit 13): nothing for GPUs was compiled"; exit 0; }
out=build/cuda
mkdir -p "$out"
result=0
fail() { echo "FAILED: cuda: $*"; result=1; }

flags=(-std=c++20 -O2 -gencode "arch=compute_90,code=[sm_90,compute_90]" -Werror all-warnings -Xcompiler
    -Wall,-Wextra,-Wconversion,-Wshadow -Iinclude -Itests)
[ -z "${HERRING_DOCTEST_INCLUDE-}" ] || flags+=(-isystem "$HERRING_DOCTEST_INCLUDE")
compile() { # source, program
    if nvcc "${flags[@]}" "$1" -o "$out/$2" >"$out/$2.log" 2>&1; then
        echo "cuda: $1: compiles and links"
    else
        fail "$1 does not compile"
        grep -E -A3 'error|warning' "$out/$2.log" | head -n 30
        return 1
    fi
}

# Every kernel of a PTX file reads and writes 16 bytes at a time, and none calls through a pointer.
looked_at() {
    grep -q callprototype "$1" && { echo "an indirect call"; return 1; }
    awk '
        /\.entry/ { ++kernels; name = $0; loads = stores = 0; inside = 1 }
        inside && /ld\.global(\.[a-z]+)*\.v4\.u32/ { ++loads }
        inside && /st\.global(\.[a-z]+)*\.v4\.u32/ { ++stores }
        inside && /^}/ { inside = 0; if (!loads || !stores) { print loads " loads and " stores " stores of 16 bytes in" name; bad = 1 } }
        END { print kernels " kernels, each with 128-bit loads and stores, none with a call through a pointer"; exit bad || !kernels }
    ' "$1"
}
ptx() { nvcc -std=c++20 -O2 -arch=sm_90 -ptx -Werror all-warnings -Iinclude "${@:2}" tests/cuda/kernels.cu -o "$out/$1.ptx" >"$out/$1.log" 2>&1; }
if ptx kernels; then
    if found=$(looked_at "$out/kernels.ptx"); then echo "cuda: k-way sum: $found"; else fail "k-way sum: $found"; fi
    # The test itself: what it looks for is put in on purpose.
    for control in POINTER SINGLE; do
        if ! ptx "control_$control" "-DCONTROL_$control"; then
            fail "the control with $control does not compile"
        elif found=$(looked_at "$out/control_$control.ptx"); then
            fail "the control with $control is not caught"
        else
            echo "cuda: control with $control: caught, as it must be: $(head -n 1 <<<"$found" | cut -c1-60)"
        fi
    done
else
    fail "tests/cuda/kernels.cu does not compile"
    grep -E -A3 'error|warning' "$out/kernels.log" | head -n 30
fi

for example in examples/*/*.cu; do compile "$example" "$(basename "$example" .cu)"; done
compile bench/gpu_bench.cu gpu_bench
if echo '#include <doctest/doctest.h>' | nvcc "${flags[@]}" -E -x cu - >/dev/null 2>&1; then
    if compile tests/cuda/gpu_test.cu gpu_test; then
        # It says itself, in a line with SKIPPED, when there is no device.
        "$out/gpu_test" || fail "gpu_test"
        if "$out/gpu_test" --no-device; then :; elif command -v compute-sanitizer >/dev/null; then
            compute-sanitizer --target-processes all --error-exitcode 9 "$out/gpu_test" -tc="*sanitizer*" || fail "gpu_test under compute-sanitizer"
        else
            echo "SKIPPED: cuda: compute-sanitizer is not installed"
        fi
    fi
else
    echo "SKIPPED: cuda: gpu_test: <doctest/doctest.h> is not found (apt-get install doctest-dev, or HERRING_DOCTEST_INCLUDE)"
fi
exit $result
