// herring: a piece of what is reduced: the segments that it is copied from and to, and where it lies meanwhile.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_PIECE_HPP
#define HERRING_STEP_PIECE_HPP

#include "herring/base/config.hpp"
#include "herring/engine/execution.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// A range of a piece in a bounce slot. It is copied in `from` the caller's memory, unless that is nullptr, and copied out
/// `to` it, unless that is nullptr. The segments of a piece ascend and do not overlap; between them lies padding.
///
/// All-reduce reads and writes its one segment. Of the segments of a reduce-scatter, one an owner, all are read and a rank
/// writes its own; all-gather reads its own and writes all; broadcast reads at the root and writes elsewhere.
using segment = lent_part;

/// A piece that passes a bounce slot: its segments, in memory of that slot, which has room for all.
struct bounced_piece {
    segment* segments = nullptr;
    std::size_t count = 0; ///< segments
    std::size_t elements = 0;

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

/// The session's workers tell dedicated servers which call they begin.
template <class Session> inline constexpr bool has_commands = false;
template <class Session>
requires(Session::commands) //
    inline constexpr bool has_commands<Session> = true;

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_PIECE_HPP
