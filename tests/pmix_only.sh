#!/bin/sh
# herring: runs a rank without the variables of Open MPI, so that it sees no launcher but a PMIx server. What Open MPI says of the
# number of ranks is left in HERRING_TEST_RANKS, for the test to compare.
# SPDX-License-Identifier: Apache-2.0
#
#   mpirun -n 2 tests/pmix_only.sh PROGRAM [ARGUMENT ...]
if [ -z "$PMIX_NAMESPACE" ] || [ -z "$OMPI_COMM_WORLD_SIZE" ]; then
    echo "SKIPPED: pmix: the mpirun of this machine is not Open MPI's, which is a PMIx server (apt-get install openmpi-bin)"
    exit 0
fi
export HERRING_TEST_RANKS="$OMPI_COMM_WORLD_SIZE"
for variable in $(env | sed -n 's/^\(OMPI_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$variable"; done
exec "$@"
