// herring: must not compile: all_moments by a reducer whose rule is average.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_moments.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <vector>

#ifndef HERRING_TWIN
using forces = herring::reducer<float, herring::transport::inproc, herring::update::average>;
#else
using forces = herring::reducer<float, herring::transport::inproc, herring::update::sample_moments>;
#endif

bool diverged(forces& reduce, std::vector<float> const& mine, std::vector<float>& mean,
              std::vector<float>& deviation) {
    return herring::all_moments(reduce, mine, mean, deviation).exceeds(0.5f);
}
