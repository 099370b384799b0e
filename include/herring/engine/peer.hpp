// herring: what an engine keeps of one rank of another node: numbers of messages, and their slots.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_PEER_HPP
#define HERRING_ENGINE_PEER_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/execution.hpp"
#include "herring/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// A pushed chunk whose result is not here yet.
struct flight {
    chunk what;
    std::uint64_t execution = 0;
    bool returned = false;
};

/// What lies in a slot.
struct arrival {
    static constexpr std::uint32_t numbers = 0xfff; ///< executions are told apart modulo this plus one

    std::size_t bytes = 0;
    std::uint32_t fingerprint = 0;
    std::uint32_t execution = 0; ///< that it belongs to, & numbers
    bool here = false;
};

/// Messages of a kind are numbered from 0 for every pair; a message's slot is its number mod its window.
struct peer {
    peer() = default;
    HERRING_SEPARABLE peer(int of, chunk_stream both, int node, plan const& made, bool staged,
                           std::span<std::byte>& memory);

    std::byte* slot(std::uint64_t number) const noexcept {
        return slots_ + number % flights.size() * slot_size_;
    }
    std::span<std::byte> slot_bytes(std::uint64_t number) const noexcept {
        return {slot(number), slot_size_};
    }
    std::byte* stage(std::uint64_t number) const noexcept {
        return stages_ + number % flights.size() * slot_size_;
    }
    std::byte* hop_slot(std::uint64_t number) const noexcept {
        return hop_slots_ + number % plan::one_hop_window() * hop_size_;
    }
    std::span<std::byte> hop_slot_bytes(std::uint64_t number) const noexcept {
        return {hop_slot(number), hop_size_};
    }

    int rank = -1;
    bool lost = false;
    errc why = errc::ok;     // it was lost
    std::uint32_t sends = 0; // posted and not complete

    // two hops: this rank pushes to the peer
    chunk_cursor push;
    std::uint64_t pushed = 0; // number of the next push
    std::uint64_t oldest = 0; // the first push whose result is not here
    bool prepared = false;    // the next push's result is awaited and its part is made, but it is not sent

    // two hops: the peer pushes to this rank
    std::uint32_t opened = 0; // receives of the first window that are posted
    std::uint64_t served = 0; // number of the next push to be summed
    bool reposted = false;    // its slot's next receive is posted, but its result is not sent

    // one hop, both ways
    std::uint64_t hops_out = 0;
    std::uint64_t hops_in = 0;
    std::uint64_t hops_posted = 0;

    fixed_array<arrival> arrivals; // slot → the peer's push
    fixed_array<flight> flights;   // slot → this rank's push
    fixed_array<arrival> hop_arrivals;

  private:
    static std::byte* take(std::span<std::byte>& memory, std::size_t bytes) noexcept {
        std::byte* const taken = memory.data();
        memory = memory.subspan(bytes);
        return taken;
    }

    std::size_t slot_size_ = 0;
    std::size_t hop_size_ = 0;
    std::byte* slots_ = nullptr;
    std::byte* hop_slots_ = nullptr;
    std::byte* stages_ = nullptr;
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/impl/peer.hpp"
#endif

#endif // HERRING_ENGINE_PEER_HPP
