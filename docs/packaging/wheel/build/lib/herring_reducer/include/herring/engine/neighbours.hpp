// herring: one rank's neighbours: its node, its peers on other nodes, and which of them handles a chunk.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_NEIGHBOURS_HPP
#define HERRING_ENGINE_NEIGHBOURS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/execution.hpp"
#include "herring/model/roles.hpp"
#include "herring/model/topology.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// A rank's place among the others: pure, worked out once.
///
/// Memory: 4 bytes a node where all have as many ranks, which gives each rank one peer a node; else 4 bytes a
///         rank.
class neighbours {
  public:
    /// `with`: the ranks of other nodes that this rank shares chunks with, in the order of the transport's
    /// peers.
    neighbours(topology const& of_ranks, herring::roles const& of_nodes, int of_rank,
               std::span<int const> with)
        : map(of_ranks), roles(of_nodes), rank(of_rank), node(map.node(rank)), local(map.local_rank(rank)),
          local_size(map.local_size(node)), contributes(roles.contributor(node).value >= 0),
          server(roles.server(node)), one_a_node_(map.largest_node() == map.smallest_node()),
          index_(static_cast<std::size_t>(one_a_node_ ? map.nodes() : map.size())) {
        for (std::size_t i = 0; i < with.size(); ++i)
            index_[entry_of(with[i])] = static_cast<std::uint32_t>(i);
    }

    /// The chunks that this rank handles on its node.
    chunk_stream own_chunks() const noexcept {
        return {static_cast<std::uint32_t>(local), static_cast<std::uint32_t>(local_size)};
    }
    /// The chunks that this rank and a peer have to do with each other for.
    chunk_stream chunks_with(int peer_rank) const noexcept {
        return chunk_stream::between(local, local_size, map.local_rank(peer_rank),
                                     map.local_size(map.node(peer_rank)));
    }

    /// Place among the peers of a rank, and of the one that handles a chunk on another node.
    std::size_t peer_of(int of_rank) const noexcept { return index_[entry_of(of_rank)]; }
    std::size_t handler(int of_node, chunk const& c) const noexcept {
        if (one_a_node_) return index_[static_cast<std::size_t>(of_node)];
        return peer_of(map.rank_of(of_node, static_cast<int>(c.turn) % map.local_size(of_node)));
    }

    int nodes() const noexcept { return map.nodes(); }
    /// The rank in the world of a local rank.
    int rank_of(int of_local) const noexcept { return map.rank_of(node, of_local); }
    /// Contributors in their order, which is that of combination.
    std::span<int const> contributors() const noexcept { return roles.contributors; }
    /// The same nodes from the one behind this rank's on, so that ranks do not all begin with the same one.
    int contributor_behind(std::size_t steps) const noexcept {
        std::size_t const first = contributes ? roles.contributor(node).place() : 0;
        return roles.contributors[(first + steps) % roles.contributors.size()];
    }
    bool is_local(int of_rank) const noexcept { return map.node(of_rank) == node; }

    topology const& map;
    herring::roles const& roles;
    int const rank;
    int const node;
    int const local;
    int const local_size;
    bool const contributes; ///< this rank's node
    server_id const server; ///< that this rank's node is, or −1

  private:
    std::size_t entry_of(int of_rank) const noexcept {
        return static_cast<std::size_t>(one_a_node_ ? map.node(of_rank) : of_rank);
    }

    bool const one_a_node_;
    fixed_array<std::uint32_t> index_; // node, or rank → place in the peers; only of those that are
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_NEIGHBOURS_HPP
