// herring: must not compile: an all_to_all by a reducer whose placement has servers.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_to_all.hpp"
#include "herring/herring.hpp"
#include "herring/serve.hpp"
#include "herring/transport/inproc.hpp"

#include <vector>

#ifndef HERRING_TWIN
using weights = herring::reducer<float, herring::transport::inproc, herring::placement::dedicated>;
#else
using weights = herring::reducer<float, herring::transport::inproc, herring::placement::colocated>;
#endif
void route(weights& reduce, std::vector<float> const& in, std::vector<float>& out) {
    herring::all_to_all(reduce, in, out);
}
