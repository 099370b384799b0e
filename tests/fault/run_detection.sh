#!/usr/bin/env bash
# herring: builds the measurement of detection times (build/detection) and runs it: the whole table of docs/reliability.md, or one
# row of it with arguments of its own: tests/fault/run_detection.sh --transport tcp --fault kill --draws 100
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/../.."
mkdir -p build
compiler=${CXX:-g++}
command -v ccache >/dev/null && compiler="ccache $compiler"
libraries=() transports=(tcp shm)
if echo '#include <rdma/fabric.h>' | $compiler -E -x c++ - >/dev/null 2>&1; then libraries=(-lfabric) transports+=(ofi); fi
$compiler -std=c++20 -O1 -g -Wall -Wextra -Wpedantic -Iinclude -Itests tests/fault/detection.cpp -o build/detection -pthread "${libraries[@]}"
[ $# = 0 ] || exec build/detection "$@"
for transport in "${transports[@]}"; do
    for fault in kill idle; do build/detection --transport "$transport" --fault $fault --draws 100 --seed 11; done
    build/detection --transport "$transport" --fault stop --draws 40 --together 10 --seed 12
    [ "$transport" != shm ] || continue # one host: no network in between
    build/detection --transport "$transport" --fault partition --draws 40 --together 10 --seed 13
    build/detection --transport "$transport" --fault silent --draws 30 --together 15 --seed 14
done
build/detection --fault reset --draws 40 --seed 11
