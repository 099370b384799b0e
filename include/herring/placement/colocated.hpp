// herring: placement of servers on the nodes of the workers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLACEMENT_COLOCATED_HPP
#define HERRING_PLACEMENT_COLOCATED_HPP

#include "herring/base/config.hpp"
#include "herring/placement/placement.hpp"

namespace HERRING_NAMESPACE::placement {

/// Every node contributes, and serves one shard of every bucket.
///
/// Shape:   N nodes → N contributors and N servers with equal shares, number n of each on node n; each local rank serves its
///          own slice.
/// Cost:    2(N-1)/N · M bytes out and as many in, a node, for M bytes of gradients; no extra machine.
/// Source:  Parameter Hub, SoCC'18 (CS: colocated sharded); Herring, SC'20 gives each server its own share.
struct colocated {
    using axis = axes::placement;
    static constexpr char const* name = "colocated";

    static constexpr placement_facts facts{.dedicated_servers = false};

    static constexpr roles assign(topology const& map) { return roles::both(map.nodes()); }
};
static_assert(placement_policy<colocated>);

} // namespace HERRING_NAMESPACE::placement

#endif // HERRING_PLACEMENT_COLOCATED_HPP
