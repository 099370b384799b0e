#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: builds the package of examples/14_pytorch for its torch, and runs device.py. Downloads nothing.
#
#   tests/torch/device.sh [PYTHON]     [python3] has torch, setuptools, wheel and ninja; 9 minutes at most
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$(command -v "${1:-python3}") || { echo "tests/torch/device.sh: there is no ${1:-python3}" >&2; exit 2; }
for module in torch setuptools wheel ninja; do
    "$python" -c "import $module" 2> /dev/null || { echo "SKIPPED: tests/torch/device.sh: $python has no $module"; exit 0; }
done
"$python" -c 'import sys, torch
print("Python", sys.version.split()[0], "torch", torch.__version__, torch.cuda.is_available() and torch.cuda.get_device_name() or "no GPU")'
HERRING_TORCH_PYTHON=$python exec timeout -k 10 540 tests/torch/run.sh device
