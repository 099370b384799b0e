// herring: must not compile: the means and the deviations in one buffer.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_moments.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <vector>

using forces = herring::reducer<float, herring::transport::inproc, herring::update::moments>;

bool diverged(forces& reduce, std::vector<float> const& mine, std::vector<float>& mean,
              [[maybe_unused]] std::vector<float>& deviation) {
#ifndef HERRING_TWIN
    auto const told = herring::all_moments(reduce, mine, mean);
#else
    auto const told = herring::all_moments(reduce, mine, mean, deviation);
#endif
    return told.exceeds(0.5f);
}
