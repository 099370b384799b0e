#!/usr/bin/env bash
# herring: what is for GPUs, with nothing but nvcc and doctest's header: compiled, its code looked at, and run on a GPU or a stand-in for one.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/cuda/run.sh [--short | --errors]    HERRING_DOCTEST_INCLUDE: the folder that has doctest/doctest.h, if it is not a system header
#   tests/cuda/run.sh --build DIR [--arch sm_90]      programs for a machine with a GPU, and what they need there; runs nothing
#   tests/cuda/run.sh --prebuilt DIR [--logs DIR]     runs those, and compiles nothing
#
# Code for sm_90, and PTX for what is newer. Programs lie in build/cuda. --short: PTX alone; no bench; and where there is no
# GPU, no gpu_test, which takes two minutes to compile: all headers in one file in its place, and the example on the stand-in.
set -u
short=0 errors_alone=0 build='' prebuilt='' logs='' arch=sm_90
usage() { sed -n '5,7s/^# *//p' "$0"; exit 2; }
while [ $# -gt 0 ]; do
    case $1 in
    --short) short=1 ;;
    --errors) short=1 errors_alone=1 ;;
    --build | --prebuilt | --logs | --arch)
        [ $# -gt 1 ] || usage
        declare "${1#--}=$2"
        shift
        ;;
    *) usage ;;
    esac
    shift
done
root=$(cd "$(dirname "$0")/../.." && pwd)
result=0
fail() { echo "FAILED: cuda: $*"; result=1; }

# Code for one architecture, and PTX for what is newer. One compiler at a time: gpu_test takes 3 GiB.
build_to() { # folder
    local flags=(-std=c++20 -O2 "-arch=$arch" -cudart static -Xlinker -s -Xcompiler -static-libstdc++,-static-libgcc
        -I"$root/include" -I"$root/tests") bytes
    [ "$(uname -m)" != x86_64 ] || flags+=(-Xcompiler -march=x86-64-v3)
    [ -z "${HERRING_DOCTEST_INCLUDE-}" ] || flags+=(-isystem "$HERRING_DOCTEST_INCLUDE")
    mkdir -p "$1/data" || return
    for source in tests/cuda/gpu_test.cu bench/gpu_bench.cu examples/06_gpu/gpu.cu; do
        echo "cuda: compiling $source for $arch ..."
        nvcc "${flags[@]}" "$root/$source" -o "$1/$(basename "$source" .cu)" || { fail "$source does not compile"; return; }
    done
    cp "$root"/bench/data/*.csv "$1/data" && cp "$root/bench/gpu_gloo.py" "$root/bench/gpu_device.sh" "$0" "$1" || fail "no copy in $1"
    bytes=$(du -sb "$1" | cut -f1)
    echo "cuda: $1 has $((bytes / 1024)) KiB; on a machine with a GPU and this machine's C library or a newer one: $1/gpu_device.sh OUT"
    [ "$bytes" -le $((45 << 20)) ] || fail "$1 is larger than 45 MiB"
}
absolute() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }
if [ -n "$build" ]; then
    command -v nvcc >/dev/null || { echo "FAILED: cuda: no nvcc (CUDA toolkit 13)"; exit 1; }
    build_to "$(absolute "$build")"
    exit $result
fi
[ -z "$prebuilt" ] || prebuilt=$(absolute "$prebuilt")
[ -z "$logs" ] || logs=$(absolute "$logs")
[ -n "$prebuilt" ] || cd "$root" || exit 1
[ -n "$prebuilt" ] || command -v nvcc >/dev/null || { echo "SKIPPED: cuda: no nvcc (CUDA toolkit 13): nothing for GPUs was compiled"; exit 0; }
out=${prebuilt:-build/cuda}
logs=${logs:-$out} # of what runs
mkdir -p "$out" "$logs"

# Calls of CUDA's are checked by the program, which goes on where threads get no IPC handle: they are not looked at here.
sanitized() { # tool, log, what the test is told
    compute-sanitizer --tool "$1" --target-processes all --report-api-errors no --error-exitcode 9 "$out/gpu_test" "${@:3}" >"$logs/$2.log" 2>&1 &&
        ! grep -qE '(ERROR|RACECHECK) SUMMARY: [1-9]' "$logs/$2.log"
}

sanitizers() {
    command -v compute-sanitizer >/dev/null || { echo "SKIPPED: cuda: compute-sanitizer is not installed"; return; }
    # The test itself first: in a process that is forked, as all ranks are, a slip is found.
    if sanitized memcheck control -ns -tc="control*"; then
        fail "compute-sanitizer does not find what is wrong in the control ($logs/control.log)"
    elif ! grep -q 'Invalid __global__ read' "$logs/control.log"; then
        fail "compute-sanitizer ends, in the control, for another reason ($logs/control.log)"
    else
        echo "cuda: compute-sanitizer: the control is caught, as it must be"
    fi
    for tool in memcheck racecheck synccheck; do
        if sanitized "$tool" "$tool" -tc="sanitizer*"; then
            echo "cuda: compute-sanitizer: $tool: nothing is found"
        else
            fail "gpu_test under compute-sanitizer --tool $tool ($logs/$tool.log)"
            grep -E '^========= [^ ]' "$logs/$tool.log" | head -n 20
        fi
    done
}

# It says itself, in lines with SKIPPED, when there is no device, or one alone.
on_gpu() { # examples
    local program
    for program in "$@"; do
        if timeout 300 "$out/$program" >"$logs/$program.log" 2>&1; then
            echo "cuda: on a GPU: the example $program: runs"
        else
            fail "the example $program on a GPU ($logs/$program.log)"
            tail -n 20 "$logs/$program.log"
        fi
    done
    sanitizers
}
if [ -n "$prebuilt" ]; then
    "$out/gpu_test" || fail "gpu_test"
    "$out/gpu_test" --no-device || on_gpu gpu
    exit $result
fi

flags=(-std=c++20 -O2 -gencode "arch=compute_90,code=[sm_90,compute_90]" -Werror all-warnings -Xcompiler
    -Wall,-Wextra,-Wconversion,-Wshadow -Iinclude -Itests)
[ $short = 0 ] || flags=("${flags[@]/code=\[sm_90,compute_90\]/code=compute_90}" -Xcompiler -O0)
[ -z "${HERRING_DOCTEST_INCLUDE-}" ] || flags+=(-isystem "$HERRING_DOCTEST_INCLUDE")
# nccl.h is NVIDIA's where that is installed, else one with the declarations alone.
stand_in_headers=-Itests/cuda/stand_in/nccl
echo '#include <nccl.h>' | nvcc "${flags[@]}" -E -x cu - >/dev/null 2>&1 || flags+=("$stand_in_headers")
link() { nvcc "${flags[@]}" "$out/$1.o" -o "$out/$2" "${@:3}" >"$out/$2.log" 2>&1; } # object, program, what else
errors_of() { grep -E -A3 'error|warning' "$out/$1.log" | head -n 30; }
compiles() { # source, program
    if [ -f "$out/$2.o" ] && link "$2" "$2"; then
        echo "cuda: $1: compiles and links"
    else
        fail "$1 does not compile"
        errors_of "$2"
        return 1
    fi
}

# Everything is compiled first, as many at once as there are cores; what did not compile leaves no file but its log.
commands=() cache=
! command -v ccache >/dev/null || cache=ccache # which leaves to nvcc what is no object
nvcc_to() { commands+=("rm -f $out/$1; $cache nvcc ${*:2} -o $out/$1 >$out/${1%.*}.log 2>&1 || rm -f $out/$1"); } # file, flags and source
object() { nvcc_to "$2.o" "${flags[@]@Q}" "${@:3}" -c "$1"; } # source, what its object is called, more flags
compile() { printf '%s\n' "${commands[@]}" | xargs -d '\n' -P "${JOBS:-$(nproc)}" -I{} bash -c '{}'; }
ptx() { nvcc_to "$1.ptx" -std=c++20 -O2 -arch=sm_90 -ptx -Werror all-warnings -Iinclude "${@:2}" tests/cuda/kernels.cu; }

object tests/cuda/stand_in/runtime.cpp stand_in -O1
object tests/cuda/errors.cpp errors
object tests/cuda/torch_device.cpp torch_device
without_kernels() { # program
    if [ ! -f "$out/stand_in.o" ] || [ ! -f "$out/$1.o" ]; then
        fail "tests/cuda/$1.cpp or the stand-in for CUDA's runtime does not compile"
        errors_of stand_in
        errors_of "$1"
    elif ! link "$1" "$1_on_stand_in" "$out/stand_in.o" -cudart none; then
        fail "$1 does not link with the stand-in"
    elif HERRING_STAND_IN_DEVICES=2 timeout 300 "$out/$1_on_stand_in" >"$out/$1_on_stand_in.log" 2>&1; then
        echo "cuda: on a stand-in for CUDA's runtime, not on a GPU: $(tail -n 1 "$out/$1_on_stand_in.log")"
    else
        fail "$1 on the stand-in"
        head -n 40 "$out/$1_on_stand_in.log"
    fi
}
errors() { # in a second each
    without_kernels errors
    without_kernels torch_device
    [ -x "$out/torch_device_on_stand_in" ] || return
    if HERRING_STAND_IN_SLIP=waits timeout 300 "$out/torch_device_on_stand_in" >"$out/control_torch_device.log" 2>&1; then
        fail "the control without waits of events is not caught: torch_device"
    else
        echo "cuda: control on the stand-in, torch_device without waits of events: caught, as it must be"
    fi
}
if [ $errors_alone = 1 ]; then
    compile
    errors
    exit $result
fi

main=nothing # beside examples: gpu_test, on a GPU or on the stand-in for one, or in the short run all headers
if [ $short = 1 ] && ! nvidia-smi -L >/dev/null 2>&1; then
    main=headers
    (cd include && find . -name '*.cuh' | cut -c3- | sort | sed 's/.*/#include "&"/') >"$out/headers.cu"
    object "$out/headers.cu" headers
elif echo '#include <doctest/doctest.h>' | nvcc "${flags[@]}" -E -x cu - >/dev/null 2>&1; then
    main=gpu_test
    object tests/cuda/gpu_test.cu gpu_test
    object tests/cuda/nccl_test.cu nccl_test
else
    echo "SKIPPED: cuda: gpu_test: <doctest/doctest.h> is not found (apt-get install doctest-dev, or HERRING_DOCTEST_INCLUDE)"
fi
for example in examples/*/*.cu; do object "$example" "$(basename "$example" .cu)"; done
# With AVX: nvcc's device pass sees other branches of the host's kernels then, and must accept them too.
avx=()
[ "$(uname -m)" != x86_64 ] || avx=(-Xcompiler -march=x86-64-v3)
object tests/cuda/transports.cu transports "${avx[@]}"
[ $short = 1 ] || object bench/gpu_bench.cu gpu_bench
if [ $main = gpu_test ]; then
    object tests/cuda/stand_in/nccl.cpp stand_in_nccl -O1
    nvcc_to stand_in_nccl_alone.o "$stand_in_headers" "${flags[@]@Q}" -O1 -c tests/cuda/stand_in/nccl.cpp # with the stand-in's nccl.h, too
fi
ptx kernels
for control in POINTER SINGLE LOADS STORES FEW COPY; do ptx "control_$control" "-DCONTROL_$control"; done
compile

# Every kernel of a PTX file that sums reads each of its sources 16 bytes at a time, and writes so; so does the one that
# copies, four accesses at a time: 4 + 1 loads where source and target are aligned alike, else 4, 4 of a warp's last
# thread, and 2. No kernel calls through a pointer. Inspections read as they come.
# How many sources there are is in a kernel's name; where they are counted, the
# first is read apart from the others.
looked_at() {
    grep -qE 'callprototype|calltargets' "$1" && { echo "an indirect call"; return 1; }
    awk '
        /\.entry/ {
            name = $0; loads = stores = 0; inside = name !~ /inspect_kernel|join_kernel/
            if (!inside) { ++others; next }
            copies += copying = name ~ /batched_copy_kernel/
            kernels += !copying
            due = copying ? 15 : match(name, /Lb[01]ELi[0-9]+E/) ? substr(name, RSTART + 6, RLENGTH - 7) + 0 : 1
            if (due == 0) due = 2
        }
        inside && /ld\.(global(\.[a-z]+)*\.)?v4\.u32/ { ++loads }
        inside && /st\.(global(\.[a-z]+)*\.)?v4\.u32/ { ++stores }
        inside && /^}/ { inside = 0; if (loads < due || !stores) { print loads " loads of " due " and " stores " stores of 16 bytes in " name; bad = 1 } }
        END { print kernels + 0 " sums, " copies + 0 " batched copy, each with 128-bit loads of every source and such stores, and " others + 0 " others; none with a call through a pointer"; exit bad || !kernels || !copies }
    ' "$1"
}
if [ -f "$out/kernels.ptx" ]; then
    if found=$(looked_at "$out/kernels.ptx"); then echo "cuda: kernels: $found"; else fail "kernels: $found"; fi
    # The test itself: what it looks for is put in on purpose, and found for that reason.
    while read -r control due; do
        if [ "$control" = NOTHING ]; then
            : >"$out/control_NOTHING.ptx"
        elif [ ! -f "$out/control_$control.ptx" ]; then
            fail "the control with $control does not compile"
            continue
        fi
        if found=$(looked_at "$out/control_$control.ptx"); then
            fail "the control with $control is not caught"
        elif [[ $found != "$due"* ]]; then
            fail "the control with $control is caught for another reason: $found"
        else
            echo "cuda: control with $control: caught, as it must be: $due"
        fi
    done <<'TEXT'
POINTER an indirect call
SINGLE 0 loads of 1 and 0 stores of 16 bytes
LOADS 0 loads of 1 and 1 stores of 16 bytes
STORES 1 loads of 1 and 0 stores of 16 bytes
FEW 1 loads of 2 and 1 stores of 16 bytes
COPY 1 loads of 15 and 1 stores of 16 bytes
NOTHING 0 sums
TEXT
else
    fail "tests/cuda/kernels.cu does not compile"
    errors_of kernels
fi

# The same objects over a stand-in for CUDA's runtime, which is no GPU: what is out of order, freed too soon, or called where
# CUDA forbids it shows there. Its environment: stand_in/process.hpp.
on_stand_in() { # program, log, what it is told
    timeout 900 "$out/$1_on_stand_in" "${@:3}" >"$out/$2.log" 2>&1
}
passes() { # what, log, what the test is told; the environment is set by who calls
    if on_stand_in gpu_test "$2" "${@:3}"; then
        echo "cuda: on a stand-in for CUDA's runtime, not on a GPU: $1: $(grep -oE '[0-9]+ passed' "$out/$2.log" | head -n 1)"
    else
        fail "gpu_test on the stand-in: $1 ($out/$2.log)"
        grep -vE 'share device|^$' "$out/$2.log" | head -n 40
    fi
}
control() { # slip, policy: the tests themselves: without what CUDA does, they fail
    if HERRING_STAND_IN_SEED=1 HERRING_STAND_IN_SLIP=$1 on_stand_in gpu_test "control_$1" -tc="sanitizer: $2*"; then
        fail "the control without $1 of events is not caught: $2"
    elif ! grep -q "differs from the host's" "$out/control_$1.log"; then
        fail "the control without $1 of events is caught for another reason: $2 ($out/control_$1.log)"
    else
        echo "cuda: control on the stand-in, $2 without $1 of events: caught, as it must be"
    fi
}
stand_in() { # tests: gpu_test, or nothing
    [ -f "$out/stand_in.o" ] || return # `errors` has told why
    local program seed=${HERRING_STAND_IN_SEED:-2} slip
    for program in "$@" "${examples[@]}"; do
        link "$program" "${program}_on_stand_in" "$out/stand_in.o" -cudart none || { fail "$program does not link with the stand-in"; return; }
    done
    for program in "${examples[@]}"; do
        if on_stand_in "$program" "$program"; then
            echo "cuda: on a stand-in for CUDA's runtime, not on a GPU: the example $program: runs"
        else
            fail "the example $program on the stand-in ($out/$program.log)"
        fi
    done
    [ $# = 0 ] && return
    HERRING_STAND_IN_SEED=1 passes "1 device, seed 1: test cases" stand_in_1
    HERRING_STAND_IN_SEED=$seed HERRING_STAND_IN_DEVICES=2 passes "2 devices, seed $seed: test cases" stand_in_2 \
        -tce="the kernel*,both pass*,anywhere*,*killed*,nowhere*"
    HERRING_STAND_IN_SEED=$seed HERRING_STAND_IN_DEVICES=2 HERRING_STAND_IN_PEERS=0 \
        passes "2 devices out of each other's reach, seed $seed: test cases" stand_in_apart -tc="sanitizer: pcie*,bad input*"
    if [ ! -f "$out/stand_in_nccl.o" ] || [ ! -f "$out/stand_in_nccl_alone.o" ] || [ ! -f "$out/nccl_test.o" ]; then
        fail "tests/cuda/nccl_test.cu or the stand-in for NCCL does not compile"
        errors_of nccl_test
        errors_of stand_in_nccl
        errors_of stand_in_nccl_alone
    elif ! link nccl_test nccl_test_on_stand_in "$out/stand_in.o" "$out/stand_in_nccl.o" -cudart none; then
        fail "nccl_test does not link with the stand-ins"
    elif HERRING_STAND_IN_SEED=$seed HERRING_STAND_IN_DEVICES=4 on_stand_in nccl_test nccl_test; then
        echo "cuda: on stand-ins for CUDA's runtime and NCCL, not on a GPU: 4 devices, seed $seed: nccl_test: test cases: $(grep -oE '[0-9]+ passed' "$out/nccl_test.log" | head -n 1)"
    else
        fail "nccl_test on the stand-ins ($out/nccl_test.log)"
        tail -n 40 "$out/nccl_test.log"
    fi
    for slip in waits records; do
        control $slip pcie_staging
        control $slip nvlink
    done
    on_stand_in gpu_test control_beyond -ns -tc="control*"
    if grep -q 'beyond_its_end: 128 bytes at .*: there is no such memory' "$out/control_beyond.log"; then
        echo "cuda: control on the stand-in, a kernel that reads too far: caught, as it must be"
    else
        fail "the control that reads too far is not caught ($out/control_beyond.log)"
    fi
}

examples=()
for example in examples/*/*.cu; do
    compiles "$example" "$(basename "$example" .cu)" && examples+=("$(basename "$example" .cu)")
done
[ $short = 1 ] || compiles bench/gpu_bench.cu gpu_bench
errors
# Not run: there is one node here.
if [ -f "$out/transports.o" ]; then
    echo "cuda: tests/cuda/transports.cu: compiles"
else
    fail "tests/cuda/transports.cu does not compile"
    errors_of transports
fi
if [ $main = headers ]; then
    if [ -f "$out/headers.o" ]; then
        echo "cuda: $(wc -l <"$out/headers.cu") headers compile in one file"
    else
        fail "the headers of language CUDA do not compile"
        errors_of headers
    fi
    stand_in
elif [ $main = gpu_test ]; then
    if compiles tests/cuda/gpu_test.cu gpu_test; then
        "$out/gpu_test" || fail "gpu_test"
        if "$out/gpu_test" --no-device; then
            stand_in gpu_test
        else
            on_gpu "${examples[@]}"
            # It says itself, in a line with SKIPPED, when there are not two devices.
            if ! link nccl_test nccl_test -lnccl; then
                echo "SKIPPED: cuda: nccl_test: no NCCL to link with (libnccl)"
            elif ! timeout 300 "$out/nccl_test"; then
                fail "nccl_test"
            fi
        fi
    fi
fi
exit $result
