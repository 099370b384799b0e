// herring: the roles of nodes, as a value: contributors and servers, and the types of their numbers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_ROLES_HPP
#define HERRING_MODEL_ROLES_HPP

#include "herring/base/config.hpp"
#include "herring/model/topology.hpp"

#include <compare>
#include <cstddef>
#include <string_view>
#include <vector>

namespace HERRING_NAMESPACE {

/// A number from 0 on, comparable with numbers of its kind only. −1: none.
template <class Tag> struct index {
    int value = -1;

    /// The id of an element of a table.
    static constexpr index at(std::size_t place) noexcept { return {static_cast<int>(place)}; }
    /// The place in a table that has an element for each id; not for −1.
    constexpr std::size_t place() const noexcept { return static_cast<std::size_t>(value); }

    friend constexpr auto operator<=>(index, index) = default;
};

struct of_server;
struct of_contributor;
struct of_peer;

using server_id = index<of_server>;           ///< [0, servers)
using contributor_id = index<of_contributor>; ///< [0, contributors): the order of combination
using peer_id = index<of_peer>;               ///< place in `transport_needs::peers`

/// The roles of the nodes of a topology: a contributor has tensors, a server combines a share of every
/// bucket. A node has one role or both.
///
/// Shape:    both lists ascend. Nodes are numbered rack by rack, and in a rack by their lowest rank, which is
///           the order in which contributions are combined.
/// Cost:     O(log nodes) for a look-up of a node.
/// Lifetime: a value, usable in constant expressions.
struct roles {
    std::vector<int> contributors; ///< contributor → node
    std::vector<int> servers;      ///< server → node
    std::vector<int> shares;       ///< server → its share, at least 1; empty: all are equal

    /// Returns the roles of nodes that all have both roles, with equal shares.
    static constexpr roles both(int nodes) {
        roles all;
        for (int n = 0; n < nodes; ++n) {
            all.contributors.push_back(n);
            all.servers.push_back(n);
        }
        return all;
    }

    constexpr int contributor_count() const noexcept { return static_cast<int>(contributors.size()); }
    constexpr int server_count() const noexcept { return static_cast<int>(servers.size()); }

    /// Returns the number of a node in that role; −1 if it does not have the role.
    constexpr contributor_id contributor(int node) const noexcept { return {place(contributors, node)}; }
    constexpr server_id server(int node) const noexcept { return {place(servers, node)}; }

    constexpr int node_of(contributor_id id) const noexcept { return contributors[id.place()]; }
    constexpr int node_of(server_id id) const noexcept { return servers[id.place()]; }

    /// A server combines share(id) / all_shares() of every bucket.
    constexpr std::size_t share(server_id id) const noexcept {
        return shares.empty() ? 1 : static_cast<std::size_t>(shares[id.place()]);
    }
    constexpr std::size_t all_shares() const noexcept {
        if (shares.empty()) return servers.size();
        std::size_t sum = 0;
        for (int const share : shares) sum += static_cast<std::size_t>(share);
        return sum;
    }

    /// Returns the number of ranks of all contributors, by which `average` divides.
    constexpr int contributing_ranks(topology const& map) const noexcept {
        int ranks = 0;
        for (int const node : contributors) ranks += map.local_size(node);
        return ranks;
    }
    /// Returns the number of ranks of the largest contributor.
    constexpr int largest_contributor(topology const& map) const noexcept {
        int ranks = 0;
        for (int const node : contributors)
            if (map.local_size(node) > ranks) ranks = map.local_size(node);
        return ranks;
    }

    friend constexpr bool operator==(roles const&, roles const&) = default;

  private:
    static constexpr int place(std::vector<int> const& nodes, int node) noexcept {
        std::size_t first = 0; // binary search
        for (std::size_t end = nodes.size(); first < end;) {
            std::size_t const middle = first + (end - first) / 2;
            if (nodes[middle] < node)
                first = middle + 1;
            else
                end = middle;
        }
        return first < nodes.size() && nodes[first] == node ? static_cast<int>(first) : -1;
    }
};

namespace detail {

/// A defect of roles; `node` has it if `of_a_node`.
struct roles_defect {
    char const* what = nullptr; ///< nullptr: none
    bool of_servers = false;
    bool of_a_node = false;
    int node = -1;
};

/// Checks the roles that a placement policy assigns.
///
/// Cost: O(nodes).
HERRING_SETUP constexpr roles_defect defect_of(roles const& all, topology const& map, bool dedicated) {
    for (bool const servers : {false, true}) {
        std::vector<int> const& list = servers ? all.servers : all.contributors;
        if (list.empty()) return {servers ? "names no server" : "names no contributor", servers};
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (list[i] < 0 || list[i] >= map.nodes()) return {"does not exist", servers, true, list[i]};
            if (i > 0 && list[i] == list[i - 1]) return {"is listed twice", servers, true, list[i]};
            if (i > 0 && list[i] < list[i - 1])
                return {"follows a larger number, and nodes must ascend", servers, true, list[i]};
        }
    }
    if (!all.shares.empty()) {
        if (all.shares.size() != all.servers.size())
            return {"has another number of shares than of servers", true};
        for (std::size_t i = 0; i < all.shares.size(); ++i)
            if (all.shares[i] < 1) return {"has no share", true, true, all.servers[i]};
        if (all.all_shares() > std::size_t{1} << 24) return {"has shares whose sum is above 2^24", true};
    }
    for (int n = 0; n < map.nodes(); ++n) {
        bool const contributes = all.contributor(n).value >= 0;
        bool const serves = all.server(n).value >= 0;
        if (!contributes && !serves) return {"neither contributes nor serves", false, true, n};
        if (!dedicated && !(contributes && serves))
            return {"has one role only, and the policy's facts say dedicated_servers = false", serves, true,
                    n};
    }
    return {};
}

[[noreturn]] HERRING_SEPARABLE void refuse_roles(std::string_view policy, roles_defect const& defect,
                                                 topology const& map);

} // namespace detail

} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/model/roles_impl.hpp"
#endif

#endif // HERRING_MODEL_ROLES_HPP
