// herring: buffers of the caller's outside the layout: reduced where they lie, or in pieces by bounce slots.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_BUFFER_HPP
#define HERRING_STEP_BUFFER_HPP

#include "herring/base/config.hpp"
#include "herring/base/time.hpp"
#include "herring/error.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/plan/plan.hpp"
#include "herring/step/calls.hpp"
#include "herring/step/piece.hpp"
#include "herring/trace/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// Throws when two buffers differ in size, or overlap and are not one.
HERRING_SEPARABLE void check_apart(calls& checks, char const* operation, std::span<std::byte const> in,
                                   std::span<std::byte const> out, std::size_t element_bytes);

/// Reduces one buffer at a time, by the memory path of its size.
///
/// Cost:     in place: none but the copy from `in` to `out`, if they are two. Bounced: one copy in, one out.
/// Lifetime: refers to the session, its tensor store and its bounce buffers.
template <class Session, class Bounce> class buffer {
    using element = typename Session::element;
    using store = typename Session::store;

  public:
    buffer(Session& session, store& tensors, Bounce& bounce)
        : session_(session), store_(tensors), bounce_(bounce), piece_(session.memory().piece_elements) {
        tail_shards_.reserve(static_cast<std::size_t>(session.plan().nodes) + 8);
        if (piece_ > 0) session_.divide(piece_, whole_, whole_shards_);
    }

    /// All-reduces `count` elements, not 0.
    status reduce(element const* in, element* out, std::size_t count, time_point deadline) {
        memory_path const path = session_.memory().path_of_buffer(count * sizeof(element));
        if (path == memory_path::bounced || path == memory_path::device)
            return reduce_pieces(in, out, count, deadline);
        if (in != out) std::memcpy(out, in, count * sizeof(element));
        session_.divide(count, tail_, tail_shards_);
        if (path == memory_path::mailbox) tail_.path = route::mailbox; // memory that the others do not see
        return session_.finish(session_.submit(tail_, tail_shards_.data(),
                                               {.own = reinterpret_cast<std::byte*>(out)}, no_bucket,
                                               fingerprint_of(count, no_bucket)),
                               deadline);
    }

  private:
    /// A buffer as a list of pieces of one size; the last may be smaller.
    struct pieces {
        buffer& of;
        element const* in;
        element* out;
        std::size_t total; // elements
        std::size_t count;

        std::size_t available() const noexcept { return count; }
        std::size_t elements(std::size_t n) const noexcept {
            return n + 1 < count ? of.piece_ : total - (count - 1) * of.piece_;
        }
        bool bounced(std::size_t) const noexcept { return true; }
        std::byte* gather(std::size_t) const noexcept { return nullptr; }
        template <class Add> void for_each_segment(std::size_t n, Add const& add) const noexcept {
            add(segment{reinterpret_cast<std::byte const*>(in + n * of.piece_),
                        reinterpret_cast<std::byte*>(out + n * of.piece_), 0, elements(n)});
        }
        std::span<std::byte const> next_in_slot(std::size_t n, std::size_t) const noexcept {
            n += memory_map::bounce_slots;
            if (n >= count) return {};
            return std::as_bytes(std::span(in + n * of.piece_, elements(n)));
        }
        void submit(std::size_t n, piece_place const& at) noexcept {
            bool const whole = elements(n) == of.piece_;
            of.submitted_ = of.session_.submit(whole ? of.whole_ : of.tail_,
                                               whole ? of.whole_shards_.data() : of.tail_shards_.data(), at,
                                               no_bucket, fingerprint_of(total, no_bucket - n));
        }
    };

    status reduce_pieces(element const* in, element* out, std::size_t count, time_point deadline) {
        pieces list{*this, in, out, count, divide_up(count, piece_)};
        if (std::size_t const tail = list.elements(list.count - 1); tail != piece_)
            session_.divide(tail, tail_, tail_shards_);
        bounce_.begin();
        bounce_.drain(list, list.count, deadline);
        if (status ended = session_.fail_with(store_.failed()); !ended.ok()) return ended;
        return session_.finish(submitted_, deadline);
    }

    Session& session_;
    store& store_;
    Bounce& bounce_;
    std::size_t const piece_; // elements
    bucket whole_, tail_;     // a piece of that size; a smaller one, or a buffer in place
    std::vector<shard> whole_shards_, tail_shards_;
    std::uint64_t submitted_ = 0; // executions, with the last one
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/impl/buffer.hpp"
#endif

#endif // HERRING_STEP_BUFFER_HPP
