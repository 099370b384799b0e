// herring: bounce buffers: slots for pieces of a bucket or a buffer: copied in, reduced there, copied out.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_BOUNCE_BUFFERS_HPP
#define HERRING_STEP_BOUNCE_BUFFERS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/execution.hpp"
#include "herring/machine/time.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// A range of a piece in a bounce slot. It is copied in `from` the caller's memory, unless that is nullptr,
/// and copied out `to` it, unless that is nullptr. The segments of a piece ascend and do not overlap; between
/// them lies padding.
///
/// All-reduce reads and writes its one segment. A reduce-scatter has a segment an owner: all are read, and a
/// rank writes its own; all-gather reads its own and writes all; broadcast reads at the root and writes
/// elsewhere.
using segment = lent_part;

/// A piece that passes a bounce slot: its segments, in memory of that slot, which has room for all.
struct bounced_piece {
    segment* segments = nullptr;
    std::size_t count = 0; ///< segments
    std::size_t elements = 0;
    std::size_t element_bytes = 0;

    HERRING_ALWAYS_INLINE void add(segment const& one) noexcept { segments[count++] = one; }
    HERRING_ALWAYS_INLINE std::span<segment const> all() const noexcept {
        return {static_cast<segment const*>(segments), count};
    }
};

/// Where a piece lies while it is reduced.
struct piece_place {
    std::byte* own = nullptr;
    int home = -1;                     ///< local rank whose region `own` lies in; -1: this rank
    std::span<segment const> lent{};   ///< what of it is a copy that is read and written; see local_routes
    std::span<std::byte const> next{}; ///< what is copied to the same slot after it, if that is known

    HERRING_ALWAYS_INLINE void put_into(execution& e) const noexcept {
        e.own = own;
        e.home = home;
        e.lent_parts = static_cast<std::uint32_t>(lent.size());
        e.lent = lent.data();
        e.next = next;
    }
};

/// A bucket that lies at `at`. `shards`: all that `of` counts its own in; `label`: its number, or no_bucket.
inline execution execution_of(bucket const& of, shard const* shards, piece_place const& at, std::size_t label,
                              std::uint32_t fingerprint) noexcept {
    execution e{.shards = shards + of.first_shard,
                .shard_count = of.shards,
                .path = of.path,
                .elements = of.elements,
                .fingerprint = fingerprint,
                .label = static_cast<std::uint32_t>(label)};
    at.put_into(e);
    return e;
}

/// Slots for pieces of the caller's memory. A step and a collective copy a piece in, submit it as an
/// execution, and have the oldest piece copied out when it is released. `Store` copies; this class counts,
/// and knows no session.
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
    bounced_piece next_piece(std::size_t elements, std::size_t element_bytes) noexcept {
        return {segments_.data() + filled_ % slot_count * most_segments_, 0, elements, element_bytes};
    }
    /// Copies in what `next_piece` has returned. It will be execution `number`.
    piece_place copy_in(bounced_piece const& piece, std::uint64_t number) noexcept {
        std::size_t const slot = filled_++ % slot_count;
        used_[slot] = {piece, number};
        return store_.copy_in(slot, piece, number);
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

    /// Passes `count` pieces through the slots. `submit(n)` copies in piece n and submits it; it returns how
    /// many executions are submitted then, or 0 where this rank has no such piece. `meanwhile()` runs once,
    /// while the first pieces are on their way.
    ///
    /// Errors: returns the failure of the session or of the store.
    template <class Session, class Submit, class Meanwhile>
    status pass(Session& session, std::size_t count, time_point deadline, Submit const& submit,
                Meanwhile const& meanwhile) {
        std::uint64_t submitted = 0;
        begin();
        for (std::size_t n = 0;;) {
            bool const is_first = n == 0;
            for (; n < count && !full(); ++n)
                if (std::uint64_t const with = submit(n); with > 0) submitted = with;
            if (is_first) meanwhile();
            if (copy_out_next(session)) continue;
            if (empty() || session.failed() != nullptr) break;
            session.until(awaited(), deadline);
        }
        if (status ended = session.fail_with(store_.failed()); !ended.ok()) return ended;
        return session.finish(submitted, deadline);
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
