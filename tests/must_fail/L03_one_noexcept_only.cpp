// herring: must not compile: noexcept forgotten on one of two.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::placement;
    static constexpr int servers(int nodes) noexcept { return nodes; }
#ifndef HERRING_TWIN
    static constexpr int node_of(int server, int) { return server; }
#else
    static constexpr int node_of(int server, int) noexcept { return server; }
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
