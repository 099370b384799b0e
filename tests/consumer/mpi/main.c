// herring: an MPI program in C99, whose calls of MPI_Allreduce are Herring's.
// SPDX-License-Identifier: Apache-2.0
// [snippet c]
#include <herring/mpi/reduce.h>
#define MPI_Allreduce herring_mpi_allreduce // all else stays as it was

struct residual {
    double value;
    int rank; // whose it is
};

static struct residual largest(double mine, int rank, MPI_Comm comm) {
    struct residual all = {mine, rank};
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
    return all;
}
// [end]

#include <stdio.h>
#include <string.h>

#define MANY 100

// What differs from MPI's own result, which PMPI_Allreduce gives.
static int differs(MPI_Datatype type, MPI_Op op, void const* in, size_t bytes, MPI_Comm comm) {
    char wanted[MANY * 8], apart[MANY * 8], in_place[MANY * 8];
    memcpy(in_place, in, bytes);
    PMPI_Allreduce(in, wanted, MANY, type, op, comm);
    if (MPI_Allreduce(in, apart, MANY, type, op, comm) != MPI_SUCCESS) return 1;
    if (MPI_Allreduce(MPI_IN_PLACE, in_place, MANY, type, op, comm) != MPI_SUCCESS) return 1;
    return memcmp(wanted, apart, bytes) != 0 || memcmp(wanted, in_place, bytes) != 0;
}

static int errors(MPI_Comm comm, int rank) {
    const MPI_Op ops[] = {MPI_SUM, MPI_MIN, MPI_MAX};
    int ints[MANY], pairs[MANY][2], found = 0;
    long longs[MANY];
    float floats[MANY];
    double doubles[MANY];
    for (int i = 0; i < MANY; ++i) {
        ints[i] = (i * 7 + rank * 13) % 101 - 50;
        longs[i] = ints[i], floats[i] = (float)ints[i], doubles[i] = ints[i];
        pairs[i][0] = i % 3 == 0 ? 5 : ints[i], pairs[i][1] = rank * (i % 5 - 2);
    }
    for (int i = 0; i < 3; ++i) {
        found += differs(MPI_INT, ops[i], ints, sizeof ints, comm);
        found += differs(MPI_LONG, ops[i], longs, sizeof longs, comm);
        found += differs(MPI_FLOAT, ops[i], floats, sizeof floats, comm);
        found += differs(MPI_DOUBLE, ops[i], doubles, sizeof doubles, comm);
    }
    found += differs(MPI_2INT, MPI_MINLOC, pairs, sizeof pairs, comm);
    found += differs(MPI_2INT, MPI_MAXLOC, pairs, sizeof pairs, comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    found += MPI_Allreduce(MPI_IN_PLACE, ints, 1, MPI_INT, MPI_PROD, comm) != MPI_ERR_OP;
    found += strstr(herring_mpi_error(), "MPI_MINLOC and MPI_MAXLOC of MPI_2INT") == NULL;
    return found;
}

int main(int argc, char** argv) {
    int rank = 0, found = 0;
    MPI_Comm backwards;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards);
    const struct residual all = largest(rank + 0.5, rank, MPI_COMM_WORLD);
    found = errors(backwards, rank) + errors(MPI_COMM_WORLD, rank);
    if (rank == 0)
        printf("the largest is %.1f, of rank %d; other than MPI's are %d\n", all.value, all.rank, found);
    MPI_Comm_free(&backwards);
    MPI_Finalize();
    return found != 0;
}
