// herring: which ranks share a node, as a value.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_TOPOLOGY_HPP
#define HERRING_PLAN_TOPOLOGY_HPP

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace herring {

/// Which rank lives on which node: pure, the same on every rank, usable in constant expressions.
///
/// Shape:    `node_of[rank]` is a node; nodes are numbered densely in the order of the first rank that has
///           them, so rank 0 is always on node 0. On a node, local ranks follow the order of ranks.
/// Cost:     O(ranks) to build, O(1) for every question; 4 ints a rank.
/// Lifetime: a value; `members` returns a view into it. Do not write to `node_of`: build a new topology.
struct topology {
    std::vector<int> node_of; ///< rank → node, dense

    /// One rank on one node.
    constexpr topology() : topology(std::vector<int>(1, 0)) {}

    /// From any identifiers of nodes, one a rank; equal identifiers mean one node.
    constexpr explicit topology(std::vector<int> const& node_ids) { number(node_ids); }

    /// From the names of nodes, one a rank; equal names mean one node.
    static constexpr topology of_names(std::span<std::string const> names) { return topology(names); }

    /// `nodes` nodes of `local` ranks each, ranks filling node after node.
    static constexpr topology uniform(int nodes, int local) {
        std::vector<int> ids;
        for (int n = 0; n < nodes; ++n)
            for (int l = 0; l < local; ++l) ids.push_back(n);
        return topology(ids);
    }

    /// The same ranks, each a node of its own.
    constexpr topology flat() const {
        std::vector<int> ids(node_of.size());
        for (std::size_t r = 0; r < ids.size(); ++r) ids[r] = static_cast<int>(r);
        return topology(ids);
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

    /// The most and the fewest ranks that any node has.
    constexpr int largest_node() const noexcept { return largest_; }
    constexpr int smallest_node() const noexcept { return smallest_; }
    constexpr bool same_node(int a, int b) const noexcept { return node(a) == node(b); }

    friend constexpr bool operator==(topology const& a, topology const& b) noexcept {
        return a.node_of == b.node_of;
    }

  private:
    constexpr explicit topology(std::span<std::string const> names) { number(names); }

    static constexpr std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }

    template <class Ids> constexpr void number(Ids const& ids) {
        std::size_t const ranks = ids.size();
        std::vector<std::size_t> first; // node → the first rank that has it
        std::vector<int> count;
        node_of.resize(ranks);
        local_.resize(ranks);
        for (std::size_t r = 0; r < ranks; ++r) {
            std::size_t n = 0;
            if (!first.empty() && ids[first.back()] == ids[r]) n = first.size() - 1; // ranks usually fill nodes
            while (n < first.size() && !(ids[first[n]] == ids[r])) ++n;
            if (n == first.size()) {
                first.push_back(r);
                count.push_back(0);
            }
            node_of[r] = static_cast<int>(n);
            local_[r] = count[n]++;
        }
        begin_.assign(first.size() + 1, 0);
        for (std::size_t n = 0; n < first.size(); ++n) begin_[n + 1] = begin_[n] + count[n];
        order_.resize(ranks);
        for (std::size_t r = 0; r < ranks; ++r) order_[at(begin_[at(node_of[r])] + local_[r])] = static_cast<int>(r);
        largest_ = 0;
        smallest_ = count.empty() ? 0 : count[0];
        for (int const c : count) {
            if (c > largest_) largest_ = c;
            if (c < smallest_) smallest_ = c;
        }
    }

    std::vector<int> local_; // rank → local rank
    std::vector<int> begin_; // node → its first place in order_; one more at the end
    std::vector<int> order_; // ranks by (node, local rank)
    int largest_ = 0;
    int smallest_ = 0;
};

} // namespace herring

#endif // HERRING_PLAN_TOPOLOGY_HPP
