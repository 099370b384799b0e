// herring: must not compile: all_moments by a reducer that names no rule.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_moments.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <vector>

#ifndef HERRING_TWIN
using forces = herring::reducer<float, herring::transport::inproc>;
#else
using forces = herring::reducer<float, herring::transport::inproc, herring::update::moments>;
#endif

bool diverged(forces& reduce, std::vector<float> const& mine, std::vector<float>& mean,
              std::vector<float>& deviation) {
    return herring::all_moments(reduce, mine, mean, deviation).exceeds(0.5f);
}
