// herring: must not compile: a placement that the reducer does not run, in a program that uses all that a reducer has: one
// error still.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

struct elsewhere {
    using axis = herring::axes::placement;
    static constexpr int servers(int nodes) noexcept { return nodes; }
    static constexpr int node_of(int server, int) noexcept { return server; }
};

using element = float;
#ifndef HERRING_TWIN
using gradients = herring::reducer<element, herring::transport::inproc, herring::update::sum, elsewhere>;
#else
using gradients = herring::reducer<element, herring::transport::inproc, herring::update::sum>;
#endif

#include "train.hpp"
