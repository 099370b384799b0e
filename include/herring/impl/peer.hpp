// herring: an engine's state for one rank of another node: its slots.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_IMPL_PEER_HPP
#define HERRING_IMPL_PEER_HPP

#include "herring/base/config.hpp"
#include "herring/engine/peer.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE peer::peer(int of, chunk_stream both, server_id server, plan const& from, bool staged,
                             std::span<std::byte>& memory)
    : rank(of), push_cursor(both, server), pushes(from.window()), served(from.window()),
      window_(from.window()), slot_bytes_(from.slot_elements() * from.part_element_bytes),
      part_slot_bytes_(from.hop_slot_elements() * from.part_element_bytes) {
    auto const take = [&memory](std::size_t bytes) {
        std::byte* const taken = memory.data();
        memory = memory.subspan(bytes);
        return taken;
    };
    slots_ = take(window_ * slot_bytes_);
    part_slots_ = take(exchange_window::size * part_slot_bytes_);
    // Parts that are sent in place need no stage; `slots_`, because arithmetic on nullptr is undefined.
    stages_ = staged ? take(window_ * slot_bytes_) : slots_;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_IMPL_PEER_HPP
