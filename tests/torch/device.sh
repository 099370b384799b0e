#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: builds the package of examples/14_pytorch for its torch as users do, runs device.py, and measures. Downloads nothing.
#
#   tests/torch/device.sh [PYTHON]     [python3] has torch, setuptools, wheel and ninja; 3 minutes on 16 cores, each part ended in time
#   tests/torch/device.sh --times      measures with what was built before
set -euo pipefail
cd "$(dirname "$0")/../.."
times=0
[ "${1:-}" != --times ] || { times=1; shift; }
python=$(command -v "${1:-python3}") || { echo "tests/torch/device.sh: there is no ${1:-python3}" >&2; exit 2; }
for module in torch setuptools wheel ninja; do
    "$python" -c "import $module" 2> /dev/null || { echo "SKIPPED: tests/torch/device.sh: $python has no $module"; exit 0; }
done
if [ $times = 0 ]; then
    "$python" -c 'import sys, torch
print("Python", sys.version.split()[0], "torch", torch.__version__, torch.cuda.is_available() and torch.cuda.get_device_name() or "no GPU")'
    HERRING_TORCH_PYTHON=$python CXXFLAGS=-O2 timeout -k 10 300 tests/torch/run.sh device
fi
result=0
export PYTHONPATH=$PWD/build/torch/site:$PWD/tests/torch OMP_NUM_THREADS=1
for measured in "speed.py 2 3 cuda" "speed.py 4 3 cuda" "speed.py 2 5" "speed.py 4 5" "step_speed.py 4 10" "overhead.py"; do
    # shellcheck disable=SC2086
    timeout -k 10 90 "$python" -W ignore tests/torch/$measured || { echo "FAILED: $measured"; result=1; }
done
exit $result
