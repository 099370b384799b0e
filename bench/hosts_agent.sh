#!/bin/sh
# herring: Open MPI's "ssh" into a host of hosts.sh: `hosts_agent.sh 10.77.0.3 COMMAND` runs it in namespace ${BENCH_HOSTS}2.
# SPDX-License-Identifier: Apache-2.0
#
# Every host has a host name of its own, so that Open MPI takes them for different machines.
name=$BENCH_HOSTS$((${1##*.} - 1))
shift
exec ip netns exec "$name" unshare --uts sh -c "hostname $name; $*"
