// herring: an MPI program of somebody else's, C++11 and -ffast-math, that sums by Herring.
// SPDX-License-Identifier: Apache-2.0
#include <herring/mpi/reduce.hpp>

#include <cstdio>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double local = rank + 0.5, total = 0;
    herring::mpi::sum(&local, &total);
    if (rank == 0) std::printf("the sum of 0.5 and 1.5 is %.1f\n", total);
    MPI_Finalize();
}
