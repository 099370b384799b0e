// herring: what an engine keeps of one rank of another node: its slots.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_IMPL_PEER_HPP
#define HERRING_IMPL_PEER_HPP

#include "herring/base/config.hpp"
#include "herring/engine/peer.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE peer::peer(int of, chunk_stream both, int node, plan const& made, bool staged,
                             std::span<std::byte>& memory)
    : rank(of), push(both, node), arrivals(made.window()), flights(made.window()),
      hop_arrivals(plan::one_hop_window()), slot_size_(made.slot_elements() * made.partial_bytes),
      hop_size_(made.hop_slot_elements() * made.partial_bytes) {
    std::size_t const window = made.window();
    slots_ = take(memory, window * slot_size_);
    hop_slots_ = take(memory, plan::one_hop_window() * hop_size_);
    // Parts that are sent from where they lie need no stage; to count from nullptr would be undefined.
    stages_ = staged ? take(memory, window * slot_size_) : slots_;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_IMPL_PEER_HPP
