#!/usr/bin/env bash
# herring: on a machine with a GPU, what `tests/cuda/run.sh --build DIR` compiled: every figure and the tests, in nine minutes at most.
# SPDX-License-Identifier: Apache-2.0
#
#   DIR/gpu_device.sh OUT [seconds]     [540]
#
# Writes below OUT alone: machine.txt, a file for each part of gpu_bench, gloo.txt, tests.txt and the logs of the tests. Compiles
# nothing, needs no network but loopback, and leaves the device's settings as they are. Each part has a timeout; what fails or is
# left out is told in a line, and is the status in the end.
set -u
[ $# -ge 1 ] || { sed -n '5,9s/^# *//p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
out=$1 most=${2:-540} result=0
if "$here/gpu_test" --no-device >/dev/null 2>&1; then
    echo "SKIPPED: gpu_device: no GPU here: nothing was run"
    exit 0
fi
mkdir -p "$out" || exit 1

part() { # name, at most so many seconds, command
    local name=$1 seconds=$2 left=$((most - SECONDS)) began=$SECONDS status
    shift 2
    [ "$seconds" -le "$left" ] || seconds=$left
    if [ "$seconds" -lt 5 ]; then
        echo "NOT RUN: $name: no time is left"
        result=1
        return
    fi
    timeout -k 5 "$seconds" "$@" >"$out/$name.txt" 2>&1
    status=$?
    cat "$out/$name.txt"
    echo "== $name: $((SECONDS - began)) s, status $status$([ $status -lt 124 ] || echo ": it was ended, or died")"
    [ $status = 0 ] || result=1
}
machine() {
    date -u
    nvidia-smi
    nvidia-smi -q -d CLOCK,PERFORMANCE,COMPUTE
    nvidia-smi topo -m
    cat /proc/driver/nvidia/version
    lscpu
    free -g
    uname -a
    ldd --version | head -n 1
    cat /sys/kernel/mm/transparent_hugepage/enabled
}
bench() { part "$1" "$2" "$here/gpu_bench" "$1" --tables "$here/data"; }

export -f machine
part machine 30 bash -c machine
bench nodes 150
bench calls 60
bench staging 40
bench processes 60
bench steps 60
bench packing 20
bench latency 20
bench sums 30
part timeline 20 "$here/gpu_bench" timeline --timeline "$out/timeline.pftrace"
part gloo 90 python3 "$here/gpu_gloo.py" --tables "$here/data"
part tests "$most" "$here/run.sh" --prebuilt "$here" --logs "$out/tests"
echo "== all: $SECONDS s; in $out"
exit $result
