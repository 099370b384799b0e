// herring: which ranks share a node, as a value.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_TOPOLOGY_HPP
#define HERRING_PLAN_TOPOLOGY_HPP

#include "herring/detail/config.hpp"

#include <algorithm>
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
/// Cost:     O(ranks log ranks) to build, O(1) for every question; 4 ints a rank.
/// Lifetime: a value; `members` returns a view into it. Do not write to `node_of`: build a new topology.
struct topology {
    std::vector<int> node_of; ///< rank → node, dense

  private:
    // Before its callers, and without vector(n) and resize: clang 14 takes it in constant expressions only
    // so.
    template <class Ids> HERRING_SETUP constexpr void number(Ids const& ids) {
        std::size_t const ranks = ids.size();
        std::vector<std::size_t> sorted; // ranks of one node side by side, ascending
        for (std::size_t r = 0; r < ranks; ++r) sorted.push_back(r);
        std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
            return ids[a] < ids[b] || (ids[a] == ids[b] && a < b);
        });
        std::vector<std::size_t> leader = sorted; // rank → first rank of its node
        for (std::size_t i = 0; i < ranks; ++i)
            leader[sorted[i]] =
                i > 0 && ids[sorted[i - 1]] == ids[sorted[i]] ? leader[sorted[i - 1]] : sorted[i];
        std::vector<int> count; // node → ranks so far
        for (std::size_t r = 0; r < ranks; ++r) {
            bool const first = leader[r] == r;
            node_of.push_back(first ? static_cast<int>(count.size()) : node_of[leader[r]]);
            if (first) count.push_back(0);
            local_.push_back(count[at(node_of[r])]++);
        }
        begin_.push_back(0);
        for (int const c : count) begin_.push_back(begin_.back() + c);
        order_ = node_of;
        for (std::size_t r = 0; r < ranks; ++r)
            order_[at(begin_[at(node_of[r])] + local_[r])] = static_cast<int>(r);
        largest_ = 0;
        smallest_ = count.empty() ? 0 : count[0];
        for (int const c : count) {
            if (c > largest_) largest_ = c;
            if (c < smallest_) smallest_ = c;
        }
    }

    static constexpr std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }

  public:
    /// One rank on one node.
    constexpr topology() : topology(std::vector<int>{0}) {}

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
    HERRING_SETUP constexpr topology flat() const {
        std::vector<int> ids;
        ids.reserve(static_cast<std::size_t>(size()));
        for (int r = 0; r < size(); ++r) ids.push_back(r);
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

    std::vector<int> local_; // rank → local rank
    std::vector<int> begin_; // node → its first place in order_; one more at the end
    std::vector<int> order_; // ranks by (node, local rank)
    int largest_ = 0;
    int smallest_ = 0;
};

} // namespace herring

#endif // HERRING_PLAN_TOPOLOGY_HPP
