// herring: a piece of what is reduced: the segments that it is copied from and to, and where it lies meanwhile.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_PIECE_HPP
#define HERRING_STEP_PIECE_HPP

#include "herring/base/config.hpp"
#include "herring/engine/execution.hpp"
#include "herring/plan/plan.hpp"

#include <concepts>
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

/// Where a piece lies while it is reduced.
struct piece_place {
    std::byte* own = nullptr;
    int home = -1;                     ///< local rank whose region `own` lies in; -1: this rank
    std::span<segment const> lent{};   ///< what of it is a copy that is read and written; see local_routes
    std::span<std::byte const> next{}; ///< what is copied to the same slot after it, if that is known
};

/// A bucket that lies at `at`. `shards`: all that `of` counts its own in; `label`: its number, or no_bucket.
inline execution execution_of(bucket const& of, shard const* shards, piece_place const& at, std::size_t label,
                              std::uint32_t fingerprint) noexcept {
    return {.shards = shards + of.first_shard,
            .shard_count = of.shards,
            .path = of.path,
            .own = at.own,
            .home = at.home,
            .elements = of.elements,
            .fingerprint = fingerprint,
            .label = static_cast<std::uint32_t>(label),
            .lent_parts = static_cast<std::uint32_t>(at.lent.size()),
            .lent = at.lent.data(),
            .next = at.next};
}

/// The session's workers tell dedicated servers which call they begin.
template <class Session> inline constexpr bool has_commands = false;
template <class Session>
requires(Session::commands) //
    inline constexpr bool has_commands<Session> = true;

// Not a lambda: nvcc takes none in a concept.
struct segment_sink {
    void operator()(segment const&) const noexcept {}
};

/// A list of pieces, numbered from 0, that becomes available in order.
/// - `available()`: pieces [0, available()) may be submitted. `elements(n)`: a piece without elements is never submitted.
/// - `bounced(n)`: whether the piece passes a bounce slot; else it lies at `gather(n, number)`, with its
///   caller's elements in it; it will be execution `number`.
/// - `for_each_segment(n, add)`: calls `add(segment)` for each of a bounced piece's, in order.
/// - `next_in_slot(n, most)`: the elements of the piece that will follow n in its slot, if it is known now, is one segment of
///   at most `most` elements, and every piece between is bounced; else nothing.
/// - `submit(session, n, place)`: one execution, with the shards and the operation that the list is of.
template <class Pieces, class Session>
concept piece_list = requires(Pieces& pieces, Session& session, std::size_t n, piece_place const& place) {
    { pieces.available() } -> std::same_as<std::size_t>;
    { pieces.elements(n) } -> std::same_as<std::size_t>;
    { pieces.bounced(n) } -> std::same_as<bool>;
    { pieces.gather(n, n) } -> std::same_as<std::byte*>;
    pieces.for_each_segment(n, segment_sink{});
    { pieces.next_in_slot(n, n) } -> std::same_as<std::span<std::byte const>>;
    pieces.submit(session, n, place);
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_PIECE_HPP
