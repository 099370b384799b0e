// herring: must not compile: a member that must be static.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::placement;
#ifndef HERRING_TWIN
    constexpr int servers(int nodes) noexcept { return nodes; }
#else
    static constexpr int servers(int nodes) noexcept { return nodes; }
#endif
    static constexpr int node_of(int server, int) noexcept { return server; }
};

using mine = pack<float, line, own>;

#include "use.hpp"
