#!/bin/bash
# Builds the package of examples/14_pytorch against torch 2.11 and runs Python's tests over it.
#
#   tests/torch/run.sh            installs torch (790 MB) into build/torch/venv the first time; at most 5 minutes after that
#   tests/torch/run.sh CASE ...   runs the cases of check.py and data_parallel.py whose names have one of the words
#
# HERRING_TORCH_PYTHON: a Python that has torch, in place of the one that is installed. Skipped with one line where
# the CUDA toolkit that torch's wheel needs is missing, or the index of Python packages does not answer.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=build/torch
download=300 # seconds, at most
mkdir -p "$build"
skip() { echo "SKIPPED: tests/torch: $1" >&2; exit 0; }

python=${HERRING_TORCH_PYTHON:-$build/venv/bin/python}
# The first import of a module leaves its byte code in our venv, of which pip would make too much.
[ -n "${HERRING_TORCH_PYTHON:-}" ] || unset PYTHONDONTWRITEBYTECODE
if ! "$python" -c 'import torch' 2> /dev/null; then
    [ -z "${HERRING_TORCH_PYTHON:-}" ] || skip "$HERRING_TORCH_PYTHON has no torch"
    # A part of a venv is none.
    lacks() { rm -rf "$build/venv"; skip "$1"; }
    [ -d /usr/local/cuda/lib64 ] || skip "no CUDA toolkit in /usr/local/cuda, whose libraries torch 2.11 loads"
    begin=$SECONDS
    rm -rf "$build/venv"
    python3 -m venv "$build/venv" > "$build/venv.log" 2>&1 || lacks "python3 makes no venv (apt-get install python3-venv)"
    # torch without its dependencies: the toolkit has the CUDA libraries. An index that does not answer is no reason to wait.
    timeout -k 10 "$download" "$build/venv/bin/pip" install --quiet --timeout 20 --retries 1 --no-compile --no-deps \
        torch==2.11.0 nvidia-cusparselt-cu13==0.8.0 nvidia-nvshmem-cu13==3.4.5 nvidia-cufile filelock typing-extensions sympy mpmath \
        networkx jinja2 markupsafe fsspec numpy ninja packaging setuptools wheel > "$build/pip.log" 2>&1 \
        || lacks "pip did not install torch 2.11.0 (790 MB) within $download s: $(tail -1 "$build/pip.log" | grep . || echo too slow)"
    "$python" -c 'import torch' 2> "$build/import.log" || lacks "torch does not load: $(tail -1 "$build/import.log")"
    echo "installed torch in $((SECONDS - begin)) s"
fi

# The package, where its headers or sources have changed, into a folder beside the venv: a venv of somebody else's
# is left as it is.
stamp=$(cat $(find include/herring examples/14_pytorch -type f ! -path '*/build/*' ! -path '*.egg-info*' | sort) \
    | sha256sum)
if [ "$(cat "$build/stamp" 2> /dev/null)" != "$stamp $python" ]; then
    rm -rf "$build/site" examples/14_pytorch/build
    begin=$SECONDS
    MAX_JOBS=1 "$python" -m pip install --quiet --no-build-isolation --no-deps --no-index --target "$build/site" \
        examples/14_pytorch > "$build/package.log" 2>&1 \
        || { tail -40 "$build/package.log"; echo "FAILED: the package does not build"; exit 1; }
    rm -rf examples/14_pytorch/build examples/14_pytorch/src/*.egg-info
    echo "built herring_torch in $((SECONDS - begin)) s"
    echo "$stamp $python" > "$build/stamp"
fi

export PYTHONPATH=$PWD/$build/site:$PWD/tests/torch OMP_NUM_THREADS=1 HERRING_TORCH_CACHE=$PWD/$build/cache
"$python" -W ignore -m herring_torch
[ $# != 0 ] || "$python" -W ignore tests/torch/package.py
"$python" -W ignore tests/torch/check.py "$@"
exec "$python" -W ignore tests/torch/data_parallel.py "$@"
