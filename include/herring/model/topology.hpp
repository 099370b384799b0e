// herring: the topology, as a value: racks of nodes of ranks, roles of ranks, and rates of their networks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_TOPOLOGY_HPP
#define HERRING_MODEL_TOPOLOGY_HPP

#include "herring/base/config.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace HERRING_NAMESPACE {

/// The role of a rank, by HERRING_ROLE, `join_options::role` or `launch_options::roles`; the default is
/// worker.
enum class role : std::uint8_t {
    worker, ///< has tensors, and constructs reducers
    server  ///< has no tensors, and calls `herring::serve`
};

/// The highest network rate that a rank may declare, in Mbit/s.
inline constexpr int most_rate = 1'000'000'000;

constexpr char const* to_string(role of) noexcept { return of == role::server ? "server" : "worker"; }

/// The node of each rank: a pure value, the same on every rank, usable in constant expressions.
///
/// Shape:    `node_of[rank]` is a node. Nodes are numbered densely in the order of their first ranks, so rank
///           0 is on node 0. Local ranks of a node follow the order of ranks. A server is a node by itself,
///           whatever machine it runs on. Workers are numbered in the order of their ranks. Where several
///           racks are declared, nodes are numbered rack by rack: racks in the order of their first
///           ranks, and so the nodes of a rack.
/// Cost:     O(ranks) to build, O(1) for every look-up; 4 ints a rank, one more if there are servers, one
///           more if rates are declared, and one a node if racks are.
/// Lifetime: a value; `members` returns a view into it. Do not write to `node_of`: build a new topology.
struct topology {
    std::vector<int> node_of; ///< rank → node, dense

  private:
    // In constant expressions clang 14 needs these before their callers, and without vector(n) and resize.
    static constexpr std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }

    static constexpr std::size_t hash(int id) noexcept {
        return static_cast<std::uint32_t>(id) * std::uint64_t{0x9e3779b97f4a7c15} >> 32;
    }
    static constexpr std::size_t hash(std::string const& id) noexcept {
        std::uint64_t mixed = 0xcbf29ce484222325; // FNV-1a
        for (char const c : id) mixed = (mixed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
        return mixed >> 20;
    }

    /// Returns rank → first rank of its node, by a hash table that is at most half full. `roles`: empty, or
    /// one a rank.
    template <class Id>
    HERRING_SETUP static constexpr std::vector<int> leaders(std::span<Id const> ids,
                                                            std::span<role const> roles = {}) {
        std::size_t const mask = std::bit_ceil(2 * ids.size() + 1) - 1;
        std::vector<int> table, found;
        for (std::size_t i = 0; i <= mask; ++i) table.push_back(-1);
        for (std::size_t r = 0; r < ids.size(); ++r) {
            if (!roles.empty() && roles[r] == role::server) { // a node by itself
                found.push_back(static_cast<int>(r));
                continue;
            }
            std::size_t place = hash(ids[r]) & mask;
            while (table[place] >= 0 && !(ids[at(table[place])] == ids[r])) place = (place + 1) & mask;
            if (table[place] < 0) table[place] = static_cast<int>(r);
            found.push_back(table[place]);
        }
        return found;
    }

    /// Numbers the nodes, rack by rack: sets `node_of` and `rack_of_`. `leader`: rank → first rank of its
    /// node. `racks`: empty, or one a rank; that of a node is its first rank's.
    HERRING_SETUP constexpr void number_nodes(std::vector<int> const& leader, std::span<int const> racks) {
        std::vector<int> first = leaders(racks), next, rack; // rack → number of its next node; rank → rack
        while (first.size() < leader.size()) first.push_back(0); // none are declared: one rack
        for (std::size_t r = 0; r < leader.size(); ++r) {
            bool const opens = first[r] == static_cast<int>(r);
            rack.push_back(opens ? static_cast<int>(next.size()) : rack[at(first[r])]);
            if (opens) next.push_back(0);
            if (leader[r] == static_cast<int>(r)) ++next[at(rack[r])];
        }
        int nodes = 0;
        for (std::size_t k = 0; k < next.size(); ++k) {
            int const before = nodes;
            nodes += next[k];
            next[k] = before;
            while (static_cast<int>(rack_of_.size()) < nodes) rack_of_.push_back(static_cast<int>(k));
        }
        if (next.size() < 2) rack_of_.clear();
        for (std::size_t r = 0; r < leader.size(); ++r)
            node_of.push_back(leader[r] == static_cast<int>(r) ? next[at(rack[r])]++
                                                               : node_of[at(leader[r])]);
    }

    struct led_by {
        std::vector<int> leader; // rank → first rank of its node
    };
    HERRING_SETUP constexpr explicit topology(led_by const& by, std::span<role const> roles = {},
                                              std::span<int const> rates = {},
                                              std::span<int const> racks = {}) {
        bool any_rate = false;
        for (int const rate : rates) any_rate = any_rate || rate > 0;
        if (any_rate)
            for (int const rate : rates) rates_.push_back(rate);
        std::vector<int> count; // node → ranks so far
        number_nodes(by.leader, racks);
        for (int const node : node_of) {
            while (at(node) >= count.size()) count.push_back(0);
            local_.push_back(count[at(node)]++);
        }
        begin_.push_back(0);
        for (int const c : count) begin_.push_back(begin_.back() + c);
        order_ = node_of;
        for (std::size_t r = 0; r < node_of.size(); ++r)
            order_[at(begin_[at(node_of[r])] + local_[r])] = static_cast<int>(r);
        largest_ = 0;
        smallest_ = count.empty() ? 0 : count[0];
        for (int const c : count) {
            if (c > largest_) largest_ = c;
            if (c < smallest_) smallest_ = c;
        }
        workers_ = size();
        for (role const one : roles) workers_ -= one == role::server;
        if (workers_ == size()) return;
        int next = 0;
        for (role const one : roles) worker_.push_back(one == role::worker ? next++ : -1);
    }

  public:
    /// One rank on one node.
    constexpr topology() : topology(std::vector<int>{0}) {}

    /// From identifiers of nodes, one a rank: workers with equal identifiers share a node. `roles`, `rates`
    /// (of the rank's network, in Mbit/s; 0: not declared) and `racks` (identifiers, equal for the ranks of a
    /// node) are empty or have one entry a rank.
    constexpr explicit topology(std::vector<int> const& node_ids, std::span<role const> roles = {},
                                std::span<int const> rates = {}, std::span<int const> racks = {})
        : topology(led_by{leaders(std::span<int const>(node_ids), roles)}, roles, rates, racks) {}
    constexpr topology(std::vector<int> const& node_ids, std::initializer_list<role> roles,
                       std::initializer_list<int> rates = {}, std::initializer_list<int> racks = {})
        : topology(node_ids, std::span<role const>(roles.begin(), roles.size()),
                   std::span<int const>(rates.begin(), rates.size()),
                   std::span<int const>(racks.begin(), racks.size())) {}

    /// From names of nodes, one a rank: workers with equal names share a node.
    static constexpr topology of_names(std::span<std::string const> names, std::span<role const> roles = {},
                                       std::span<int const> rates = {}, std::span<int const> racks = {}) {
        return topology(led_by{leaders(names, roles)}, roles, rates, racks);
    }

    /// Returns `nodes` nodes of `local` ranks each; ranks fill node after node.
    static constexpr topology uniform(int nodes, int local) {
        std::vector<int> ids;
        for (int n = 0; n < nodes; ++n)
            for (int l = 0; l < local; ++l) ids.push_back(n);
        return topology(ids);
    }

    /// Returns the same ranks, each on a node by itself.
    HERRING_SETUP constexpr topology flat() const {
        std::vector<int> ids, racks;
        ids.reserve(static_cast<std::size_t>(size()));
        for (int r = 0; r < size(); ++r) {
            ids.push_back(r);
            racks.push_back(rack(node(r)));
        }
        topology alone(ids, std::span<role const>(), rates_, racks);
        alone.worker_ = worker_;
        alone.workers_ = workers_;
        return alone;
    }

    /// Returns these ranks as a topology of their own, in this order. None of them is a server.
    HERRING_SETUP constexpr topology subset(std::span<int const> ranks) const {
        std::vector<int> ids, rates, racks;
        for (int const r : ranks) {
            ids.push_back(node_of[at(r)]);
            racks.push_back(rack(node(r)));
            if (!rates_.empty()) rates.push_back(rates_[at(r)]);
        }
        return topology(ids, {}, rates, racks);
    }

    constexpr int size() const noexcept { return static_cast<int>(node_of.size()); }
    constexpr int nodes() const noexcept { return static_cast<int>(begin_.size()) - 1; }
    constexpr int node(int rank) const noexcept { return node_of[at(rank)]; }
    constexpr int local_rank(int rank) const noexcept { return local_[at(rank)]; }
    constexpr int local_size(int node) const noexcept { return begin_[at(node) + 1] - begin_[at(node)]; }
    constexpr int rank_of(int node, int local) const noexcept { return order_[at(begin_[at(node)] + local)]; }

    /// The ranks of a node, ascending; index = local rank.
    constexpr std::span<int const> members(int node) const noexcept {
        return {order_.data() + begin_[at(node)], at(local_size(node))};
    }

    /// The number of ranks of the largest and of the smallest node.
    constexpr int largest_node() const noexcept { return largest_; }
    constexpr int smallest_node() const noexcept { return smallest_; }
    constexpr bool same_node(int a, int b) const noexcept { return node(a) == node(b); }

    /// The racks of nodes; 1: none are declared, or all nodes are in one.
    constexpr int racks() const noexcept { return rack_of_.empty() ? 1 : rack_of_.back() + 1; }
    constexpr int rack(int node) const noexcept { return rack_of_.empty() ? 0 : rack_of_[at(node)]; }

    constexpr role role_of(int rank) const noexcept { return is_server(rank) ? role::server : role::worker; }
    constexpr bool is_server(int rank) const noexcept { return worker(rank) < 0; }
    /// True if the node is a server; all ranks of a node have one role.
    constexpr bool is_server_node(int node) const noexcept { return is_server(rank_of(node, 0)); }
    constexpr int workers() const noexcept { return workers_; }
    constexpr int servers() const noexcept { return size() - workers_; }
    /// Returns the number of a rank among the workers; −1 for a server.
    constexpr int worker(int rank) const noexcept { return worker_.empty() ? rank : worker_[at(rank)]; }
    /// Returns the declared rate of a node: the highest of its ranks, which share its network; 0: none is
    /// declared.
    constexpr int rate(int node) const noexcept {
        int highest = 0;
        for (int const rank : members(node))
            if (!rates_.empty() && rates_[at(rank)] > highest) highest = rates_[at(rank)];
        return highest;
    }

    friend constexpr bool operator==(topology const& a, topology const& b) noexcept {
        return a.node_of == b.node_of && a.worker_ == b.worker_ && a.rates_ == b.rates_ &&
               a.rack_of_ == b.rack_of_;
    }

  private:
    std::vector<int> local_;   // rank → local rank
    std::vector<int> begin_;   // node → its first index in order_; one additional entry at the end
    std::vector<int> order_;   // ranks by (node, local rank)
    std::vector<int> worker_;  // rank → number among the workers, −1; empty: all are workers
    std::vector<int> rates_;   // rank → Mbit/s, 0: not declared; empty: none is
    std::vector<int> rack_of_; // node → rack, ascending; empty: there is one
    int largest_ = 0;
    int smallest_ = 0;
    int workers_ = 0;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_TOPOLOGY_HPP
