// herring: what a placement policy is: where the servers of a plan live.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLACEMENT_PLACEMENT_HPP
#define HERRING_PLACEMENT_PLACEMENT_HPP

#include "herring/base/config.hpp"
#include "herring/policy.hpp"

#include <concepts>

namespace HERRING_NAMESPACE {

/// How many servers share every bucket of a plan over `nodes` nodes; at least 1.
template <class Policy>
concept placement_counts_servers = requires(int nodes) {
    { Policy::servers(nodes) } -> std::same_as<int>;
};

/// On which node a server lives: a node in [0, nodes) for every server in [0, servers(nodes)).
template <class Policy>
concept placement_places_servers = requires(int server, int nodes) {
    { Policy::node_of(server, nodes) } -> std::same_as<int>;
};

template <class Policy>
concept placement_nothrow = requires(int server, int nodes) {
    { Policy::servers(nodes) }
    noexcept;
    { Policy::node_of(server, nodes) }
    noexcept;
};

/// Where servers live. A pure function of the number of nodes: every rank computes the same plan from it.
template <class Policy>
concept placement_policy = std::same_as<typename Policy::axis, axes::placement> &&
    placement_counts_servers<Policy> && placement_places_servers<Policy> && placement_nothrow<Policy>;

template <class Policy> struct check<axes::placement, Policy> {
    static constexpr int broken = first_broken(
        {placement_counts_servers<Policy>, placement_places_servers<Policy>, placement_nothrow<Policy>});
    static constexpr bool value = broken < 0;
    static_assert(broken != 0,
                  "[HRG-L01] placement: needs 'static constexpr int servers(int nodes) noexcept'; a "
                  "common slip is to return std::size_t or to forget static; return int");
    static_assert(broken != 1,
                  "[HRG-L02] placement: needs 'static constexpr int node_of(int server, int nodes) "
                  "noexcept'; a common slip is to leave out 'nodes'; take both");
    static_assert(broken != 2,
                  "[HRG-L03] placement: 'servers' and 'node_of' must be noexcept; a common slip is to "
                  "mark one only; add noexcept to both");
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_PLACEMENT_PLACEMENT_HPP
