#!/usr/bin/env bash
# service: two services, and two tenants' jobs; one service is told to end, and its job goes on at the other.
# SPDX-License-Identifier: Apache-2.0
#
# run.sh PROGRAM [steps]
set -euo pipefail
program=$(realpath "$1") steps=${2-200}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$work"' EXIT
cd "$work"
port=$((20000 + $$ % 12000))
for who in alice bob job; do (umask 077; openssl rand -hex 32 >$who.key); done
mkdir -p alice/model bob/model
printf '%s\n' "alice $work/alice.key 3 4 2G 2 $work/alice" "bob $work/bob.key 1 4 2G 2 $work/bob" >tenants.conf
serve() { exec "$program" serve "127.0.0.1:$1" tenants.conf "metrics.$1" 2>>"log.$1"; } # a port
until_says() { for _ in $(seq 600); do ! grep -qs "$2" "$1" || return 0; sleep 0.1; done; cat log.* job.*; exit 1; } # file, words
serve $port & first=$!
serve $((port + 1)) & second=$!
until_says log.$port 'listens on'
until_says log.$((port + 1)) 'listens on'

job() { # tenant, services, address: a job of two ranks; prints what rank 0 does
    export HERRING_SECRET_FILE=$work/job.key HERRING_ADDR=$3 HERRING_SIZE=2
    local rank pids=()
    for rank in 1 0; do
        (cd "$1" && HERRING_RANK=$rank HERRING_NODE=$rank exec "$program" train "$2" "$1" "../$1.key" model "$steps") &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do wait "$rank"; done
}
job alice "127.0.0.1:$port,127.0.0.1:$((port + 1))" "127.0.0.1:$((port + 2))" >job.alice 2>&1 & alice=$!
job bob "127.0.0.1:$((port + 1))" "127.0.0.1:$((port + 3))" >job.bob 2>&1 & bob=$!
until_says job.alice 'begins with step 0'
until_says metrics.$port 'ranks{tenant="alice"} 2'
"$program" status metrics.$port
kill -TERM $first
wait $first
wait $alice $bob
sed 's/^/alice: /' job.alice
sed 's/^/bob: /' job.bob
grep -q 'saved behind step' job.alice
grep -q 'all steps are done' job.alice
grep -q 'all steps are done' job.bob
kill -TERM $second
wait $second
