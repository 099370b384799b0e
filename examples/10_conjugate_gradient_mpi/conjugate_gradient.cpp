// conjugate_gradient: solves the 2-D Poisson equation, its two dot products an iteration summed by MPI and by Herring.
// SPDX-License-Identifier: Apache-2.0
//
//   conjugate_gradient [points in x [points in y]]     of all ranks together; each has some rows of them
//
// Halo rows travel by MPI in both runs. This file is C++11; the one that is C++20 is herring_reduce.cpp.
#include <herring/mpi/reduce.hpp>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

typedef std::vector<double> grid;

/// This rank's rows of the grid; a vector has one more at either end, which is a neighbour's or the border.
struct part {
    int rank, ranks;
    std::size_t columns, rows;

    part(std::size_t all_columns, std::size_t all_rows) : columns(all_columns) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        std::size_t const r = static_cast<std::size_t>(rank), n = static_cast<std::size_t>(ranks);
        rows = all_rows * (r + 1) / n - all_rows * r / n;
    }
    grid zeros() const { return grid((rows + 2) * columns, 0.0); }
};

// [snippet calls]
double sum_by_mpi(double const& local) {
    double total = 0;
    MPI_Allreduce(&local, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

double sum_by_herring(double const& local) {
    double total = 0;
    herring::mpi::sum(&local, &total);
    return total;
}
// [end]

double dot(part const& of, grid const& a, grid const& b, double (*sum)(double const&)) {
    double local = 0;
    for (std::size_t i = of.columns; i < (of.rows + 1) * of.columns; ++i) local += a[i] * b[i];
    return sum(local);
}

/// Brings the neighbours' rows that touch this rank's.
void exchange_halo(part const& of, grid& x) {
    int const n = static_cast<int>(of.columns);
    int const above = of.rank > 0 ? of.rank - 1 : MPI_PROC_NULL;
    int const below = of.rank + 1 < of.ranks ? of.rank + 1 : MPI_PROC_NULL;
    double* const first = x.data() + of.columns;
    double* const last = x.data() + of.rows * of.columns;
    MPI_Sendrecv(first, n, MPI_DOUBLE, above, 0, last + of.columns, n, MPI_DOUBLE, below, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(last, n, MPI_DOUBLE, below, 1, x.data(), n, MPI_DOUBLE, above, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

/// y = A x: four times the point less its neighbours; zero outside.
void multiply(part const& of, grid& x, grid& y) {
    exchange_halo(of, x);
    std::size_t const n = of.columns;
    for (std::size_t row = 1; row <= of.rows; ++row) {
        for (std::size_t column = 0; column < n; ++column) {
            std::size_t const i = row * n + column;
            double const left = column > 0 ? x[i - 1] : 0, right = column + 1 < n ? x[i + 1] : 0;
            y[i] = 4 * x[i] - left - right - x[i - n] - x[i + n];
        }
    }
}

struct solution {
    grid x;
    int iterations;
    double residual; // |b - A x| / |b|, as the iteration has it
    double seconds;
};

solution solve(part const& of, double (*sum)(double const&)) {
    double const enough = 1e-10;
    int const most = 10000;
    grid x = of.zeros(), r = of.zeros(), p = of.zeros(), q = of.zeros();
    std::fill(r.begin() + static_cast<std::ptrdiff_t>(of.columns),
              r.end() - static_cast<std::ptrdiff_t>(of.columns), 1.0); // the right-hand side; x is zero
    p = r;
    double rr = dot(of, r, r, sum);
    double const first = std::sqrt(rr);
    int iterations = 0;
    double const begin = MPI_Wtime();
    while (std::sqrt(rr) > enough * first && iterations < most) {
        multiply(of, p, q);
        double const alpha = rr / dot(of, p, q, sum);
        for (std::size_t i = 0; i < x.size(); ++i) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        double const next = dot(of, r, r, sum);
        double const beta = next / rr;
        for (std::size_t i = 0; i < p.size(); ++i) p[i] = r[i] + beta * p[i];
        rr = next;
        ++iterations;
    }
    solution found = {x, iterations, std::sqrt(rr) / first, MPI_Wtime() - begin};
    return found;
}

void print(char const* name, solution const& by) {
    std::printf("%s  %4d iterations, residual %.1e, %7.1f us an iteration\n", name, by.iterations,
                by.residual, by.seconds / by.iterations * 1e6);
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    std::size_t const columns = argc > 1 ? static_cast<std::size_t>(std::atoi(argv[1])) : 128;
    part const mine(columns, argc > 2 ? static_cast<std::size_t>(std::atoi(argv[2])) : columns);

    sum_by_herring(0); // the first call connects the ranks
    solution const by_mpi = solve(mine, sum_by_mpi);
    solution const by_herring = solve(mine, sum_by_herring);

    // Where both add in the same order, the solutions are equal bit by bit; else they agree as far as the residual says.
    double distance = 0, largest = 0;
    for (std::size_t i = mine.columns; i < (mine.rows + 1) * mine.columns; ++i) {
        distance = std::max(distance, std::fabs(by_mpi.x[i] - by_herring.x[i]));
        largest = std::max(largest, std::fabs(by_mpi.x[i]));
    }
    distance = herring::mpi::max(distance);
    largest = herring::mpi::max(largest);
    int const apart = std::abs(by_mpi.iterations - by_herring.iterations);
    bool const agree = distance <= 1e-8 * largest && apart <= 2 && by_mpi.residual < 1e-9;
    if (mine.rank == 0) {
        std::printf("%d ranks, %zu columns, %zu rows on this one\n", mine.ranks, mine.columns, mine.rows);
        print("plain MPI   ", by_mpi);
        print("with Herring", by_herring);
        std::printf("solutions %s\n", !agree ? "DIFFER"
                                      : distance == 0.0
                                          ? "equal, bit by bit"
                                          : "agree to the residual; the order of adding differs");
    }
    MPI_Finalize();
    return agree ? 0 : 1;
}
