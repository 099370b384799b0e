// herring: must not compile: a reducer with a placement that it does not run.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/reducer.hpp"
#include "herring/transport/inproc.hpp"

struct elsewhere {
    using axis = herring::axes::placement;
    static constexpr int servers(int nodes) noexcept { return nodes; }
    static constexpr int node_of(int server, int) noexcept { return server; }
};

#ifndef HERRING_TWIN
using mine = herring::reducer<float, herring::transport::inproc, elsewhere>;
#else
using mine = herring::reducer<float, herring::transport::inproc>;
#endif

std::size_t use() { return sizeof(mine); }
