// herring: must not compile: a timeout of all_moments, and no place for what it tells.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_moments.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <chrono>
#include <vector>

using forces = herring::reducer<float, herring::transport::inproc, herring::update::moments>;

herring::status diverged(forces& reduce, std::vector<float> const& mine, std::vector<float>& mean,
                         std::vector<float>& deviation) {
    [[maybe_unused]] herring::moments_result<float> told;
#ifndef HERRING_TWIN
    return herring::all_moments(reduce, mine, mean, deviation, std::chrono::seconds(1));
#else
    return herring::all_moments(reduce, mine, mean, deviation, told, std::chrono::seconds(1));
#endif
}
