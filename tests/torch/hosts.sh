#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Times of collectives beside those of torch's Gloo, on four hosts made of network namespaces. Needs root.
#
#   tests/torch/hosts.sh [TURNS [RATE]]     [3, not shaped]; RATE as in 1gbit
#
# HERRING_TORCH_PYTHON: a Python with torch and herring_torch, installed as users do [python3].
set -euo pipefail
cd "$(dirname "$0")/../.."
turns=${1:-3} rate=${2:-} prefix=ht$$_ hosts=4
trap 'bench/hosts.sh down "$prefix" "$hosts"' EXIT
bench/hosts.sh up "$prefix" "$hosts"
[ -z "$rate" ] || bench/hosts.sh shape "$prefix" "$hosts" "$rate"
for ((rank = hosts - 1; rank >= 0; --rank)); do
    RANK=$rank WORLD_SIZE=$hosts MASTER_ADDR=10.77.0.1 MASTER_PORT=29400 GLOO_SOCKET_IFNAME=eth0 HERRING_INTERFACE=eth0 HERRING_NODE=host$rank OMP_NUM_THREADS=1 \
        ip netns exec "$prefix$rank" "${HERRING_TORCH_PYTHON:-python3}" -W ignore tests/torch/speed.py "$hosts" "$turns" &
    ranks[rank]=$!
done
status=0
for one in "${ranks[@]}"; do wait "$one" || status=1; done
exit $status
