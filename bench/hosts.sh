#!/usr/bin/env bash
# herring: hosts and a switch on this machine, made of network namespaces. Needs root.
# SPDX-License-Identifier: Apache-2.0
#
#   hosts.sh up PREFIX HOSTS [RACKS]     namespaces PREFIX0, PREFIX1, … (10.77.0.1, .2, …) on a bridge in PREFIXsw; with RACKS on so many
#                                        bridges, as many hosts each in turn, and these by an uplink each on another one
#   hosts.sh shape PREFIX HOSTS [RATE [UPLINK]]   RATE [1gbit] both ways on every link, UPLINK [RATE] on uplinks: tbf, whose burst, HOSTS_BURST [128kb],
#                                        passes unshaped; a port of a switch queues at most 256 kB
#   hosts.sh drops PREFIX HOSTS   packets that the switch's ports dropped, one number
#   hosts.sh down PREFIX HOSTS    ends what still runs in the namespaces and removes them
#
# The root namespace is left as it is: every link and address lies in namespaces made here.
set -euo pipefail
action=$1 prefix=$2 hosts=$3 rate=${4-1gbit} uplink=${5-${4-1gbit}}
racks=${4-1} burst=${HOSTS_BURST-128kb}
switch=${prefix}sw

case $action in
up)
    ip netns add "$switch"
    ip -n "$switch" link add br0 type bridge
    ip -n "$switch" link set br0 up
    for ((r = 1; racks > 1 && r <= racks; ++r)); do
        ip -n "$switch" link add "br$r" type bridge
        ip -n "$switch" link add "up$r" type veth peer name "down$r"
        ip -n "$switch" link set "up$r" master "br$r" up
        ip -n "$switch" link set "down$r" master br0 up
        ip -n "$switch" link set "br$r" up
    done
    for ((h = 0; h < hosts; ++h)); do
        ip netns add "$prefix$h"
        ip -n "$prefix$h" link set lo up
        ip -n "$switch" link add "port$h" type veth peer name eth0 netns "$prefix$h"
        ip -n "$switch" link set "port$h" master "br$((racks > 1 ? 1 + h * racks / hosts : 0))" up
        ip -n "$prefix$h" addr add "10.77.0.$((h + 1))/24" dev eth0
        ip -n "$prefix$h" link set eth0 up
    done
    ;;
shape)
    for ((h = 0; h < hosts; ++h)); do
        # A host waits for its own link (its queue never fills: TCP keeps little there); a switch drops.
        ip netns exec "$prefix$h" tc qdisc replace dev eth0 root tbf rate "$rate" burst $burst limit 16mb
        ip netns exec "$switch" tc qdisc replace dev "port$h" root tbf rate "$rate" burst $burst limit 256kb
    done
    for ((r = 1; r <= hosts; ++r)); do
        ip -n "$switch" link show "up$r" >/dev/null 2>&1 || break
        for end in "up$r" "down$r"; do ip netns exec "$switch" tc qdisc replace dev "$end" root tbf rate "$uplink" burst $burst limit 256kb; done
    done
    ;;
drops)
    for ((h = 0; h < hosts; ++h)); do
        ip netns exec "$switch" tc -s qdisc show dev "port$h"
    done | awk '/dropped/ { sub(/.*dropped /, ""); n += $1 } END { print n + 0 }'
    ;;
down)
    for name in $(seq -f "$prefix%.0f" 0 $((hosts - 1))) "$switch"; do
        ip netns pids "$name" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
        ip netns del "$name" 2>/dev/null || true
    done
    ;;
*)
    echo "hosts.sh: unknown action '$action'" >&2
    exit 2
    ;;
esac
