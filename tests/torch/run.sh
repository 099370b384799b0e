#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the package of examples/14_pytorch against torch 2.11 and runs Python's tests over it.
#
#   tests/torch/run.sh            installs torch (790 MB) into build/torch/venv the first time; at most 5 minutes after that
#   tests/torch/run.sh CASE ...   runs the cases of check.py, data_parallel.py and device.py whose names have one of the words
#   tests/torch/run.sh --full     also a package that travels; PyTorch's own tests of a backend (distributed_test.py, 15 minutes at most
#                                 for each of herring and gloo); the newest torch (1.1 GB); the module compiled and linked against 2.4
#                                 and 2.6 (1.6 GB)
#
# HERRING_TORCH_PYTHON: a Python that has torch, in place of the one that is installed. Skipped with one line where
# the CUDA toolkit that torch's wheel needs is missing, or the index of Python packages does not answer.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=build/torch
own_compiler=${CXX:-}
download=300 # seconds, at most
full=0
[ "${1:-}" != --full ] || { full=1; download=1200; shift; }
mkdir -p "$build"
ccache=()
! command -v ccache > /dev/null || ccache=(ccache)
timed() { tests/timed.sh "$1" "torch/$2" "${@:3}"; } # compile or run, what, command: for tests/run --times
skip() { echo "SKIPPED: tests/torch: $1" >&2; }

# torch without its dependencies: the toolkit has the CUDA libraries.
of_all=(nvidia-cusparselt-cu13 nvidia-nvshmem-cu13 nvidia-cufile filelock typing-extensions sympy mpmath networkx jinja2 markupsafe
    fsspec numpy ninja packaging setuptools wheel)
of_2_11=(torch==2.11.0 nvidia-cusparselt-cu13==0.8.0 nvidia-nvshmem-cu13==3.4.5 "${of_all[@]:2}")
venv() { # folder, packages: makes it where it is missing; says why it cannot
    local python=$1/bin/python begin=$SECONDS
    if "$python" -c 'import torch' 2> /dev/null; then return; fi
    # A part of a venv is none.
    lacks() { rm -rf "$1"; skip "$2"; return 1; }
    [ -d /usr/local/cuda/lib64 ] || lacks "$1" "no CUDA toolkit in /usr/local/cuda, whose libraries torch loads" || return
    rm -rf "$1"
    python3 -m venv "$1" > "$1.log" 2>&1 || lacks "$1" "python3 makes no venv (apt-get install python3-venv)" || return
    # An index that does not answer is no reason to wait.
    timeout -k 10 "$download" "$1/bin/pip" install --quiet --timeout 20 --retries 1 --no-compile --no-deps "${@:2}" > "$1.pip.log" 2>&1 \
        || lacks "$1" "pip did not install ${*:2:1} within $download s: $(tail -1 "$1.pip.log" | grep . || echo too slow)" || return
    "$python" -c 'import torch' 2> "$1.import.log" || lacks "$1" "torch does not load: $(tail -1 "$1.import.log")" || return
    echo "installed torch in $((SECONDS - begin)) s"
}

# The package, where its headers or sources have changed, into a folder beside the venv: a venv of somebody else's
# is left as it is.
package() { # python, folder
    local stamp begin=$SECONDS
    [ $full = 1 ] || local -x CXXFLAGS="${CXXFLAGS:--O0}" # for measurements install it as users do
    stamp=$(cat $(find include/herring examples/14_pytorch -type f ! -path '*/build/*' ! -path '*.egg-info*' | sort) | sha256sum)
    [ "$(cat "$2.stamp" 2> /dev/null)" != "$stamp $1 ${CXXFLAGS:-}" ] || return 0
    rm -rf "$2" examples/14_pytorch/build
    CXX=$own_compiler LDFLAGS='' MAX_JOBS=1 timed compile package "$1" -m pip install --quiet --no-build-isolation --no-deps --no-index --target "$2" \
        examples/14_pytorch > "$2.log" 2>&1 \
        || { tail -40 "$2.log"; echo "FAILED: the package does not build"; return 1; }
    rm -rf examples/14_pytorch/build examples/14_pytorch/src/*.egg-info
    echo "built herring_torch in $((SECONDS - begin)) s"
    echo "$stamp $1 ${CXXFLAGS:-}" > "$2.stamp"
}

# What compile() and DataParallel take: the compiler that is faster, nothing optimised, and set-up code that is compiled once.
compiled_for_tests() {
    local setup=$PWD/$build/setup.o
    [ -n "${CXX:-}" ] || ! command -v clang++ > /dev/null || export CXX=clang++
    export HERRING_TORCH_FLAGS="-O0 -DHERRING_SEPARATE" LDFLAGS=$setup
    timed compile setup ${ccache[@]+"${ccache[@]}"} ${CXX:-g++} -std=c++20 -O0 -fPIC -fvisibility=hidden -DHERRING_SEPARATE -Iinclude -x c++ -c include/herring/src.hpp -o "$setup"
}

# The examples: one by torchrun, as the README has it.
examples() { # python
    timed run torchrun "$1" -W ignore -m torch.distributed.run --nproc-per-node 2 examples/14_pytorch/digits.py --steps 20 \
        > "$build/examples.log" 2>&1 || { tail -40 "$build/examples.log"; echo "FAILED: digits.py by torchrun"; return 1; }
    grep 'the same weights' "$build/examples.log"
    timed run examples.py "$1" -W ignore tests/torch/examples.py "$build/gpt.svg"
}

# The bits of the library without PyTorch.
bits() { # python
    local program=$build/bits
    timed compile bits ${ccache[@]+"${ccache[@]}"} ${CXX:-g++} -std=c++20 $HERRING_TORCH_FLAGS -Iinclude -c tests/torch/bits.cpp -o "$program.o"
    ${CXX:-g++} "$program.o" $LDFLAGS -o "$program" -pthread
    timed run bits.py "$1" -W ignore tests/torch/bits.py "$program"
}

python=${HERRING_TORCH_PYTHON:-$build/venv/bin/python}
# The first import of a module leaves its byte code in our venv, of which pip would make too much.
[ -n "${HERRING_TORCH_PYTHON:-}" ] || unset PYTHONDONTWRITEBYTECODE
if [ -n "${HERRING_TORCH_PYTHON:-}" ]; then
    "$python" -c 'import torch' 2> /dev/null || { skip "$python has no torch"; exit 0; }
else
    venv "$build/venv" "${of_2_11[@]}" || exit 0
fi
package "$python" "$build/site"
compiled_for_tests
export PYTHONPATH=$PWD/$build/site:$PWD/tests/torch OMP_NUM_THREADS=1 HERRING_TORCH_CACHE=$PWD/$build/cache
"$python" -W ignore -m herring_torch
if [ $# = 0 ]; then
    timed run package.py "$python" -W ignore tests/torch/package.py
    bits "$python"
    examples "$python"
fi
timed run check.py "$python" -W ignore tests/torch/check.py "$@"
timed run data_parallel.py "$python" -W ignore tests/torch/data_parallel.py "$@"
timed run device.py "$python" -W ignore tests/torch/device.py "$@"
[ $full = 1 ] || exit 0

result=0
tests_of_pytorch() {
    "$python" -c 'import expecttest' 2> /dev/null ||
        "$python" -m pip install --quiet --timeout 20 --retries 1 --no-deps --target "$build/expecttest" expecttest > "$build/expecttest.log" 2>&1 ||
        { skip "PyTorch's own tests: pip did not install expecttest: $(tail -1 "$build/expecttest.log")"; return; }
    local backend
    for backend in herring gloo; do
        PYTHONPATH=$PYTHONPATH:$PWD/$build/expecttest "$python" -W ignore tests/torch/distributed_test.py $backend 15 \
            > "$build/distributed_test.$backend.log" 2>&1 || result=1
        grep "^$backend: \|^FAILED: \|^passes, " "$build/distributed_test.$backend.log" || { tail -20 "$build/distributed_test.$backend.log"; result=1; }
    done
}

newest() {
    venv "$build/newest" torch nvidia-nccl-cu13 "${of_all[@]}" || return 0
    local python=$build/newest/bin/python
    package "$python" "$build/newest.site"
    PYTHONPATH=$PWD/$build/newest.site:$PWD/tests/torch "$python" -W ignore tests/torch/check.py || result=1
    # Found by its entry point, without an import.
    PYTHONPATH=$PWD/$build/newest.site "$python" -W ignore -c 'import sys, torch.distributed as dist
dist.init_process_group("herring", init_method="file://" + sys.argv[1], rank=0, world_size=1)
print("ok: found by its entry point")' "$(mktemp -u)" || result=1
}

# A wheel that travels: a library a level, of which Python takes the highest that this machine has.
travels() {
    HERRING_TORCH_TARGETS="x86-64-v2 x86-64-v3 x86-64-v4" package "$python" "$build/travels.site"
    local -x PYTHONPATH=$PWD/$build/travels.site:$PWD/tests/torch
    "$python" -W ignore -c 'from herring_torch import _backend, _built, _libraries
targets = [_backend.describe(_libraries.table(_libraries.here / f"_collectives.{level}.so"))["target"] for level in _built.TARGETS]
assert len(set(targets)) == 3, targets
print(f"ok: compiled for {targets}; here runs {_libraries.default().name}")' || result=1
    "$python" -W ignore tests/torch/check.py rules_and_types movements || result=1
}

# Versions whose CUDA libraries are not here are not loaded: the module is compiled with their headers and the ABI of their
# strings, and each symbol that it takes of torch's must be there.
linked() { # version
    local to=$build/wheel-$1 abi
    if [ ! -d "$to/torch/include" ]; then
        timeout -k 10 "$download" "$python" -m pip download --quiet --timeout 20 --retries 1 --no-deps --dest "$to" "torch==$1" > "$to.log" 2>&1 \
            || { skip "torch $1: pip did not download it: $(tail -1 "$to.log")"; return; }
        "$python" -c 'import re, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
wheel.extractall(sys.argv[2], [n for n in wheel.namelist() if re.match(r"torch/(include/|share/cmake/|lib/lib(c10|torch|torch_cpu|torch_python)\.so)", n)])' \
            "$to"/torch-*.whl "$to"
        rm "$to"/torch-*.whl
    fi
    abi=$(grep -ohE '_GLIBCXX_USE_CXX11_ABI=[01]' "$to"/torch/share/cmake/Torch/TorchConfig.cmake | head -1)
    "${own_compiler:-g++}" -std=c++20 -O1 -fPIC -shared -fvisibility=hidden "-D${abi:-_GLIBCXX_USE_CXX11_ABI=1}" -DTORCH_EXTENSION_NAME=_backend -w \
        -Iinclude -isystem "$to/torch/include" -isystem "$to/torch/include/torch/csrc/api/include" \
        -isystem "$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')" \
        examples/14_pytorch/module.cpp -o "$to/_backend.so" 2> "$to.log" ||
        { grep -A3 error "$to.log" | head -40; echo "FAILED: module.cpp does not compile with torch $1"; result=1; return; }
    local missing
    missing=$(comm -23 <(nm -D --undefined-only "$to/_backend.so" | grep -v '[@]' | awk '{print $NF}' | grep -v '^_\?Py' | sort -u) \
        <(nm -D --defined-only "$to"/torch/lib/lib{c10,torch_cpu,torch_python,torch}.so | awk 'NF > 2 {sub(/@.*/, "", $3); print $3}' | sort -u) |
        grep -v '^_ITM_\|^__gmon_start__\|^_Unwind' || true)
    if [ -n "$missing" ]; then
        echo "FAILED: the module takes of torch $1 what it has not: $(c++filt <<< "$missing" | head -5)"
        result=1
    else
        echo "ok: compiled with torch $1 (${abi:-the new ABI}), and has all that it takes of it"
    fi
}

travels
tests_of_pytorch
newest
linked 2.4.1
linked 2.6.0
exit $result
