// herring: what an engine keeps of one rank of another node: its windows, and the slots of their messages.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_PEER_HPP
#define HERRING_ENGINE_PEER_HPP

#include "herring/base/config.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/window.hpp"
#include "herring/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Messages of a kind are numbered from 0 for every pair; a message's slot is its number mod its window.
///
/// Memory: window · chunk for pushes of the peer; as much where this rank's parts are staged; one-hop window · one-hop chunk.
struct peer {
    peer() = default;
    /// Takes its slots from the front of `memory`. `server`: that the peer's node is, or −1.
    HERRING_SEPARABLE peer(int of, chunk_stream both, server_id server, plan const& from, bool staged,
                           std::span<std::byte>& memory);

    std::byte* slot(std::uint64_t number) const noexcept { return slots_ + number % window_ * slot_bytes_; }
    std::span<std::byte> slot_bytes(std::uint64_t number) const noexcept {
        return {slot(number), slot_bytes_};
    }
    std::byte* stage(std::uint64_t number) const noexcept { return stages_ + number % window_ * slot_bytes_; }
    std::byte* part_slot(std::uint64_t number) const noexcept {
        return part_slots_ + exchange_window::slot_of(number) * part_slot_bytes_;
    }
    std::span<std::byte> part_slot_bytes(std::uint64_t number) const noexcept {
        return {part_slot(number), part_slot_bytes_};
    }

    int rank = -1;
    bool lost = false;
    errc why = errc::ok;     // it was lost
    std::uint32_t sends = 0; // posted and not complete

    chunk_cursor push_cursor; // chunks that this rank pushes to the peer
    push_window pushes;       // of this rank
    serve_window served;      // pushes of the peer
    exchange_window parts;    // one hop, both ways

  private:
    std::uint32_t window_ = 1;
    std::size_t slot_bytes_ = 0;
    std::size_t part_slot_bytes_ = 0;
    std::byte* slots_ = nullptr;
    std::byte* stages_ = nullptr;
    std::byte* part_slots_ = nullptr;
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/impl/peer.hpp"
#endif

#endif // HERRING_ENGINE_PEER_HPP
