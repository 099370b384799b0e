// herring: workers as the harness of the benches knows them, where there are servers too.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BENCH_WORKER_TEAM_HPP
#define HERRING_BENCH_WORKER_TEAM_HPP

#include "harness.hpp"

#include <herring/collectives/all_gather.hpp>
#include <herring/reducer.hpp>
#include <herring/world.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace bench {

/// They meet through the reducer, of float: a collective of the world's would wait for the servers.
///
/// Lifetime: refers to the reducer.
template <class Reducer> team team_of_workers(herring::world& world, Reducer& reduce) {
    int const workers = world.workers();
    // Moves bytes as they are: a double is two elements.
    auto const gather = [&reduce, workers](std::vector<double> const& mine) {
        std::vector<float> own(2 * mine.size()), all(own.size() * static_cast<std::size_t>(workers));
        std::memcpy(own.data(), mine.data(), mine.size() * sizeof(double));
        herring::all_gather(reduce, std::span<float const>(own), std::span<float>(all));
        std::vector<double> result(all.size() / 2);
        std::memcpy(result.data(), all.data(), result.size() * sizeof(double));
        return result;
    };
    return {world.worker(), workers, [gather] { (void)gather({0.0}); }, gather};
}

} // namespace bench

#endif // HERRING_BENCH_WORKER_TEAM_HPP
