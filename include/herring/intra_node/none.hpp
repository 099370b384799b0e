// herring: no intra-node reduction: every rank counts as a node and uses the transport for all others.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_INTRA_NODE_NONE_HPP
#define HERRING_INTRA_NODE_NONE_HPP

#include "herring/base/config.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/machine/private_memory.hpp"

namespace HERRING_NAMESPACE::intra_node {

/// Does not combine a node's ranks: the right choice with one rank per node, and a baseline with several.
///
/// Shape: n ranks → n contributors.
/// Cost:  none; ranks of one node exchange through the transport.
class none {
  public:
    using axis = axes::intra_node;
    static constexpr char const* name = "none";
    static constexpr intra_node_facts facts{.joins_ranks = false};

    none(world& ranks, std::size_t bytes) : memory_(bytes, ranks.rank()) {}

    std::byte* memory() noexcept { return memory_.data(); }
    std::byte* peer(int, std::byte* own) noexcept { return own; }
    void arrive(std::uint64_t) noexcept {}
    int first_not_arrived(std::uint64_t) noexcept { return -1; }
    void finish(std::uint64_t, bool) noexcept {}
    int first_not_finished(std::uint64_t) noexcept { return -1; }
    bool has_left(int) noexcept { return false; }
    std::uint32_t listen() noexcept { return 0; }
    void sleep(std::uint32_t, time_point) noexcept {}
    void wake() noexcept {}

  private:
    detail::private_memory memory_;
};
static_assert(intra_node_policy<none>);

} // namespace HERRING_NAMESPACE::intra_node

#endif // HERRING_INTRA_NODE_NONE_HPP
