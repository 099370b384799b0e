// herring: the bounce buffers: a list of pieces passes a few slots: copied in, submitted, released, copied out.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_BOUNCE_BUFFERS_HPP
#define HERRING_STEP_BOUNCE_BUFFERS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/machine/time.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/step/piece.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Runs one list of pieces at a time. Pieces are submitted in order; one that is bounced waits for a free slot, and those
/// behind it wait with it. `Store` copies, the session of a call executes; this class counts.
///
/// Cost:     a piece: one copy in, one copy out. Nothing is allocated after construction.
/// Memory:   `memory_map::bounce_slots` slots, used in turn.
/// Blocks:   `drain` alone.
/// Threads:  one at a time.
template <class Store> class bounce_buffers {
  public:
    static constexpr std::size_t slot_count = memory_map::bounce_slots;

    bounce_buffers(Store& store, std::size_t most_segments)
        : store_(store), most_segments_(most_segments), segments_(slot_count * most_segments) {}
    bounce_buffers(bounce_buffers const&) = delete;
    bounce_buffers& operator=(bounce_buffers const&) = delete;

    /// Begins a list; its first piece will be execution `number`. All pieces of the list before are released and copied out.
    void begin(std::uint64_t number) noexcept {
        submitted_ = done_ = filled_ = emptied_ = 0;
        released_ = number;
    }

    /// Pieces of the list that are submitted, and those whose result the caller has.
    std::size_t submitted() const noexcept { return submitted_; }
    std::size_t done() const noexcept { return done_; }
    /// Whether a bounced piece would have to wait for a slot.
    bool full() const noexcept { return filled_ - emptied_ == slot_count; }

    /// Copies in and submits what is available and has room.
    template <class Session, piece_list<Session> Pieces>
    void submit(Session& session, Pieces& pieces) noexcept {
        for (; submitted_ < pieces.available(); ++submitted_) {
            if (pieces.elements(submitted_) == 0) continue;
            if (!pieces.bounced(submitted_)) {
                pieces.submit(session, submitted_,
                              piece_place{.own = pieces.gather(submitted_, session.requested())});
            } else {
                if (full()) return;
                pieces.submit(session, submitted_, copy_in(pieces, session.requested()));
            }
        }
    }

    /// Copies out what is released; each free slot takes the next piece at once.
    template <class Session, piece_list<Session> Pieces>
    void advance(Session& session, Pieces& pieces) noexcept {
        for (; done_ < submitted_; ++done_) {
            if (pieces.elements(done_) == 0) continue;
            if (session.released() <= released_) break;
            if (std::size_t const slot = emptied_ % slot_count;
                emptied_ < filled_ && used_[slot].piece == done_) {
                store_.copy_out(slot, segments_of(slot), session.ended(released_), released_ + 1);
                ++emptied_;
            }
            ++released_;
            submit(session, pieces);
        }
        submit(session, pieces);
    }

    /// Returns when `count` pieces are copied out, or the session has failed.
    template <class Session, piece_list<Session> Pieces>
    void drain(Session& session, Pieces& pieces, std::size_t count, time_point deadline) noexcept {
        for (advance(session, pieces); done_ < count && session.failed() == nullptr; advance(session, pieces))
            session.until(released_ + 1, deadline);
    }

  private:
    struct slot_use {
        std::size_t piece = 0;
        std::size_t segments = 0;
    };

    std::span<segment const> segments_of(std::size_t slot) const noexcept {
        return {segments_.data() + slot * most_segments_, used_[slot].segments};
    }

    template <class Pieces> piece_place copy_in(Pieces& pieces, std::uint64_t number) noexcept {
        std::size_t const slot = filled_++ % slot_count;
        std::size_t count = 0;
        pieces.for_each_segment(
            submitted_, [&](segment const& part) { segments_[slot * most_segments_ + count++] = part; });
        used_[slot] = {submitted_, count};
        piece_place at = store_.copy_in(slot, segments_of(slot), pieces.elements(submitted_), number);
        if (!at.lent.empty()) at.next = pieces.next_in_slot(submitted_, at.lent[0].elements);
        return at;
    }

    Store& store_;
    std::size_t const most_segments_; // of a piece
    fixed_array<segment> segments_;   // of each slot
    slot_use used_[slot_count];

    std::size_t submitted_ = 0, done_ = 0; // pieces
    std::size_t filled_ = 0, emptied_ = 0; // slots, counted on
    std::uint64_t released_ = 0;           // executions, of the pieces that are done
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_BOUNCE_BUFFERS_HPP
