// herring: placement of servers on nodes of their own.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLACEMENT_DEDICATED_HPP
#define HERRING_PLACEMENT_DEDICATED_HPP

#include "herring/base/config.hpp"
#include "herring/placement/placement.hpp"

namespace HERRING_NAMESPACE::placement {

/// The ranks whose role is `server` hold all shards; workers push to them and get results, and have nothing to do with each other.
///
/// Shape:   n nodes of workers, k servers, each a node of its own → n contributors, k servers with equal shares. Several servers
///          to a machine: one a core.
/// Cost:    M bytes out and in of a node of workers, nM/k of a server, for M bytes of gradients: M/B seconds with k ≥ n networks
///          of B, where colocated takes 2(n−1)/n · M/B; with fewer it pays only if k > n²/(2(n−1)), more than half as many as
///          nodes. It adds machines.
/// Errors:  `bad_argument` on every rank, at construction, in a world without servers.
/// Source:  Parameter Hub, SoCC'18 (NCC: non-colocated sharded); BytePS, OSDI'20 (the two extremes of its formula).
struct dedicated {
    using axis = axes::placement;
    static constexpr char const* name = "dedicated";

    static constexpr placement_facts facts{.dedicated_servers = true};

    static constexpr roles assign(topology const& map) {
        roles all;
        for (int n = 0; n < map.nodes(); ++n)
            (map.is_server_node(n) ? all.servers : all.contributors).push_back(n);
        return all;
    }
};
static_assert(placement_policy<dedicated>);

} // namespace HERRING_NAMESPACE::placement

#endif // HERRING_PLACEMENT_DEDICATED_HPP
