// herring: bounce buffers: slots that the pieces of a bucket or a buffer pass one after the other, copied in and copied out.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_BOUNCE_BUFFERS_HPP
#define HERRING_STEP_BOUNCE_BUFFERS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/step/piece.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Slots for pieces of the caller's memory. A step and a collective copy a piece in, submit it as an execution, and have the
/// oldest piece copied out when it is released. `Store` copies; this class counts, and knows no session.
///
/// Cost:     a piece: one copy in, one copy out. Nothing is allocated after construction.
/// Memory:   `memory_map::bounce_slots` slots, used in turn.
/// Threads:  one at a time.
template <class Store> class bounce_buffers {
  public:
    static constexpr std::size_t slot_count = memory_map::bounce_slots;

    bounce_buffers(Store& store, std::size_t most_segments)
        : store_(store), most_segments_(most_segments), segments_(slot_count * most_segments) {}
    bounce_buffers(bounce_buffers const&) = delete;
    bounce_buffers& operator=(bounce_buffers const&) = delete;

    /// Begins with the first slot again. All pieces are copied out.
    void begin() noexcept { filled_ = emptied_ = 0; }
    HERRING_ALWAYS_INLINE bool full() const noexcept { return filled_ - emptied_ == slot_count; }
    HERRING_ALWAYS_INLINE bool empty() const noexcept { return filled_ == emptied_; }

    /// The piece for the next slot, without segments yet. A slot is free.
    bounced_piece next_piece(std::size_t elements) noexcept {
        return {segments_.data() + filled_ % slot_count * most_segments_, 0, elements};
    }
    /// Copies in what `next_piece` has returned. It will be execution `number`.
    piece_place copy_in(bounced_piece const& piece, std::uint64_t number) noexcept {
        std::size_t const slot = filled_++ % slot_count;
        used_[slot] = {piece, number};
        return store_.copy_in(slot, piece.all(), piece.elements, number);
    }

    /// The number of executions after which the oldest piece can be copied out. Not empty.
    HERRING_ALWAYS_INLINE std::uint64_t awaited() const noexcept {
        return used_[emptied_ % slot_count].number + 1;
    }
    /// Copies the oldest piece out. False: it is not released, or there is none.
    template <class Session> bool copy_out_next(Session& session) noexcept {
        if (empty() || session.released() < awaited()) return false;
        std::size_t const slot = emptied_++ % slot_count;
        auto const& [piece, number] = used_[slot];
        store_.copy_out(slot, piece.all(), session.ended(number), number + 1);
        return true;
    }

  private:
    struct slot_use {
        bounced_piece piece;
        std::uint64_t number = 0; // execution
    };

    Store& store_;
    std::size_t const most_segments_; // of a piece
    fixed_array<segment> segments_;   // of each slot
    slot_use used_[slot_count];
    std::size_t filled_ = 0, emptied_ = 0; // slots, counted on
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_BOUNCE_BUFFERS_HPP
