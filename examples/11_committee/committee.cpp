// committee: force fields of different weights, one a rank, move atoms by their mean force, and halt where they disagree.
// SPDX-License-Identifier: Apache-2.0
#include <herring/collectives/all_moments.hpp>
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/transport/tcp.hpp>
#ifdef COMMITTEE_IN_MPI
#include <herring/join/mpi.hpp>
#else
#include <herring/launch.hpp>
#endif

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

namespace {

constexpr std::size_t atoms = 1000, coordinates = 3 * atoms;
constexpr double time_step = 0.05;
constexpr double heating = 1.004;  // of velocities, a step
constexpr double threshold = 0.05; // of the deviation of a force
constexpr int most_steps = 2000;

/// The mean of all ranks' forces, and how much they deviate.
using committee = herring::reducer<double, herring::transport::tcp, herring::intra_node::shared_memory,
                                   herring::update::moments>;

/// Numbers of a seed, in [-1, 1).
struct dice {
    std::uint64_t state;
    double next() {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<double>(state >> 11) * 0x1p-52 - 1;
    }
};

/// What the members have learnt: the force that pulls a coordinate back to its place in the crystal.
double true_force(double x) { return -x - 0.3 * x * x * x; }

/// A member's force field: a layer of tanh units of its own, fitted to samples of the true force between -1 and 1. There all
/// members agree; beyond it each one goes on in its own way.
class force_field {
  public:
    explicit force_field(int member) {
        dice random{static_cast<std::uint64_t>(member) * 2654435761u + 1};
        for (std::size_t i = 0; i < 32; ++i) random.next();
        for (std::size_t h = 0; h < units; ++h) {
            slope_[h] = 0.5 + 2 * (random.next() + 1);
            shift_[h] = 2 * random.next();
        }
        // The least squares, by their normal equations: rows of units, and the right-hand side behind them.
        std::array<std::array<double, units + 1>, units> rows{};
        for (int sample = -100; sample <= 100; ++sample) {
            double const x = sample / 100.0;
            for (std::size_t a = 0; a < units; ++a) {
                for (std::size_t b = 0; b < units; ++b) rows[a][b] += unit(a, x) * unit(b, x);
                rows[a][units] += unit(a, x) * true_force(x);
            }
        }
        for (std::size_t a = 0; a < units; ++a) rows[a][a] += 1e-6; // weights stay small
        for (std::size_t pivot = 0; pivot < units; ++pivot)
            for (std::size_t a = 0; a < units; ++a) {
                if (a == pivot) continue;
                double const factor = rows[a][pivot] / rows[pivot][pivot];
                for (std::size_t b = pivot; b <= units; ++b) rows[a][b] -= factor * rows[pivot][b];
            }
        for (std::size_t a = 0; a < units; ++a) weight_[a] = rows[a][units] / rows[a][a];
    }

    void operator()(std::span<double const> positions, std::span<double> forces) const {
        for (std::size_t i = 0; i < positions.size(); ++i) {
            forces[i] = 0;
            for (std::size_t h = 0; h < units; ++h) forces[i] += weight_[h] * unit(h, positions[i]);
        }
    }

  private:
    static constexpr std::size_t units = 8;
    double unit(std::size_t h, double x) const { return std::tanh(slope_[h] * x + shift_[h]); }

    std::array<double, units> slope_, shift_, weight_{};
};

/// One member. Every rank has all positions, and they stay the same bits, for all move by the same mean force.
int run(herring::world& world) {
    force_field const field(world.rank());
    committee reduce(world);
    std::vector<double> position(coordinates), velocity(coordinates), force(coordinates), mean(coordinates),
        deviation(coordinates);
    dice thermal{1}; // the same on every rank
    for (double& v : velocity) v = 0.3 * thermal.next();

    int step = 0;
    herring::moments_result<double> told;
    for (; step < most_steps; ++step) {
        field(position, force);
        told = herring::all_moments(reduce, force, mean, deviation);
        if (world.rank() == 0 && step % 50 == 0)
            std::printf("step %4d: the largest deviation is %.4f\n", step, told.largest_deviation);
        if (told.exceeds(threshold)) break; // every rank has the same bits, so all halt here
        for (std::size_t i = 0; i < coordinates; ++i) {
            velocity[i] = (velocity[i] + time_step * mean[i]) * heating;
            position[i] += time_step * velocity[i];
        }
    }
    bool const halted = told.exceeds(threshold);
    if (world.rank() == 0) {
        if (halted)
            std::printf("step %4d: halted, the members disagree by %.4f about atom %zu, which is %.2f off "
                        "its place\n",
                        step, told.largest_deviation, told.index / 3, std::fabs(position[told.index]));
        else
            std::printf("no member disagreed in %d steps\n", step);
    }

    // Nothing of this is needed: it shows that nobody went another way.
    position.push_back(step);
    herring::gather_result const all = world.all_gather(std::as_bytes(std::span(position)));
    bool same = true;
    for (auto const theirs : all)
        same = same && std::memcmp(theirs.data(), position.data(), theirs.size()) == 0;
    if (world.rank() == 0)
        std::printf("positions of %d ranks %s\n", world.size(), same ? "equal, bit by bit" : "DIFFER");
    return same && halted == (world.size() > 1) ? 0 : 1; // one member agrees with itself
}

} // namespace

int main([[maybe_unused]] int count, [[maybe_unused]] char** arguments) {
#ifdef COMMITTEE_IN_MPI
    MPI_Init(&count, &arguments);
    int status = 1;
    {
        herring::world world = herring::join(MPI_COMM_WORLD);
        status = run(world);
    }
    MPI_Finalize();
    return status;
#else
    return herring::launch(4, run);
#endif
}
