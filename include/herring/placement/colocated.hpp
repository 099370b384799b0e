// herring: placement on the workers' own nodes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLACEMENT_COLOCATED_HPP
#define HERRING_PLACEMENT_COLOCATED_HPP

#include "herring/base/config.hpp"
#include "herring/placement/placement.hpp"

namespace HERRING_NAMESPACE::placement {

/// Every node that computes gradients also serves one shard of every bucket.
///
/// Shape:   N nodes → N servers, server s on node s; each of its local ranks serves its own slice.
/// Cost:    2(N-1)/N · M bytes out and as many in, a node, for M bytes of gradients; no extra machine.
/// Source:  Parameter Hub, SoCC'18 (CS: colocated sharded); Herring, SC'20 gives each server its own share.
struct colocated {
    using axis = axes::placement;
    static constexpr char const* name = "colocated";

    static constexpr int servers(int nodes) noexcept { return nodes; }
    static constexpr int node_of(int server, int /*nodes*/) noexcept { return server; }
};
static_assert(placement_policy<colocated>);

} // namespace HERRING_NAMESPACE::placement

#endif // HERRING_PLACEMENT_COLOCATED_HPP
