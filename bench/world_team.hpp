// herring: the ranks of a herring::world as the harness of the benches knows them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BENCH_WORLD_TEAM_HPP
#define HERRING_BENCH_WORLD_TEAM_HPP

#include "harness.hpp"

#include <herring/world.hpp>

#include <cstring>
#include <span>
#include <vector>

namespace bench {

/// Lifetime: refers to the world.
inline team team_of(herring::world& world) {
    return {world.rank(), world.size(), [&world] { world.barrier(); },
            [&world](std::vector<double> const& mine) {
                std::vector<double> all;
                for (auto const& bytes : world.all_gather(std::as_bytes(std::span(mine)))) {
                    all.resize(all.size() + mine.size());
                    std::memcpy(&all[all.size() - mine.size()], bytes.data(), bytes.size());
                }
                return all;
            }};
}

} // namespace bench

#endif // HERRING_BENCH_WORLD_TEAM_HPP
