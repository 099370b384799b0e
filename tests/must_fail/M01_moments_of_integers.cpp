// herring: must not compile: mean and deviation of integers.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_moments.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <cstdint>
#include <vector>

#ifndef HERRING_TWIN
using number = std::int32_t;
#else
using number = double;
#endif
using votes = herring::reducer<number, herring::transport::inproc, herring::update::moments>;

bool diverged(herring::world& world, std::vector<number> const& mine, std::vector<number>& mean,
              std::vector<number>& deviation) {
    votes reduce(world);
    return herring::all_moments(reduce, mine, mean, deviation).exceeds(number(1));
}
