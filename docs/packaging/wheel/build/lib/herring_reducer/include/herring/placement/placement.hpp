// herring: placement policies, which give nodes their roles: the concept, and the default, colocated.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLACEMENT_PLACEMENT_HPP
#define HERRING_PLACEMENT_PLACEMENT_HPP

#include "herring/base/config.hpp"
#include "herring/model/roles.hpp"
#include "herring/model/topology.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// The facts of a placement policy: `static constexpr placement_facts facts{...};`.
struct placement_facts {
    bool dedicated_servers = false; ///< a node may have one role only; false: every node has both
};

template <class Policy>
concept placement_assigns = requires(topology const& map) {
    { Policy::assign(map) } -> std::same_as<roles>;
};

template <class Policy>
concept placement_states_facts = states_facts<Policy, placement_facts>;

/// A placement policy decides which nodes contribute and which serve. A pure function of the topology, the
/// same on every rank.
///
/// Errors:  `bad_argument` on every rank, from the reducer's constructor: no server, no contributor, a node
///          that does not exist, is listed twice or has no role. The text names the policy and the node.
template <class Policy>
concept placement_policy = std::same_as<typename Policy::axis, axes::placement> &&
    placement_assigns<Policy> && placement_states_facts<Policy>;

template <class Policy> struct check<axes::placement, Policy> {
    static constexpr int broken = first_broken({placement_assigns<Policy>, placement_states_facts<Policy>});
    static constexpr bool value = broken < 0;
    static_assert(broken != 0,
                  "[HRG-L04] placement: needs 'static herring::roles assign(herring::topology const&)'; a "
                  "common slip is to forget static, or to take the number of nodes; return the nodes that "
                  "contribute and those that serve");
    static_assert(broken != 1,
                  "[HRG-L05] placement: needs 'static constexpr herring::placement_facts facts{...}'; a "
                  "common slip is to leave it out where the defaults hold; write 'facts{}'");
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::placement {

/// Every node contributes, and serves one shard of every bucket. The default.
///
/// Shape:   N nodes → N contributors and N servers with equal shares, number n of each on node n; each local
///          rank serves its own chunks.
/// Cost:    2(N-1)/N · M bytes out of a node and as many in, for M bytes of gradients; no extra machine.
/// Source:  Parameter Hub, SoCC'18 (CS: colocated sharded); Herring, SC'20 gives each server its own share.
struct colocated {
    using axis = axes::placement;
    static constexpr char const* name = "colocated";

    static constexpr placement_facts facts{.dedicated_servers = false};

    static constexpr roles assign(topology const& map) { return roles::both(map.nodes()); }
};
static_assert(placement_policy<colocated>);

} // namespace HERRING_NAMESPACE::placement

#endif // HERRING_PLACEMENT_PLACEMENT_HPP
