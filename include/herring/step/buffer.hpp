// herring: buffers of the caller's outside the layout: reduced where they lie, or in pieces by bounce slots.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_BUFFER_HPP
#define HERRING_STEP_BUFFER_HPP

#include "herring/base/config.hpp"
#include "herring/base/time.hpp"
#include "herring/error.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/plan/plan.hpp"
#include "herring/step/bounce_buffers.hpp"
#include "herring/step/calls.hpp"
#include "herring/step/piece.hpp"
#include "herring/step/session_base.hpp"
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
/// Lifetime: refers to the session's values, its tensor store and its bounce buffers.
template <class Store, class Sharding> class buffer {
  public:
    buffer(session_base& session, Store& tensors, bounce_buffers<Store>& bounce)
        : session_(session), store_(tensors), bounce_(bounce), element_bytes_(session.plan().element_bytes),
          piece_(session.memory().piece_elements) {
        tail_shards_.reserve(static_cast<std::size_t>(session.plan().nodes) + 8);
        if (piece_ > 0) session_.template divide<Sharding>(piece_, whole_, whole_shards_);
    }

    /// All-reduces `count` elements, not 0.
    template <class Session>
    status reduce(Session& session, void const* from, void* to, std::size_t count, time_point deadline) {
        auto const* const in = static_cast<std::byte const*>(from);
        auto* const out = static_cast<std::byte*>(to);
        memory_path const path = session_.memory().path_of_buffer(count * element_bytes_);
        if (path == memory_path::bounced || path == memory_path::device)
            return reduce_pieces(session, in, out, count, deadline);
        if (in != out) std::memcpy(out, in, count * element_bytes_);
        session_.template divide<Sharding>(count, tail_, tail_shards_);
        if (path == memory_path::mailbox) tail_.path = route::mailbox; // memory that the others do not see
        return session.finish(session.submit(execution_of(tail_, tail_shards_.data(), {.own = out}, no_bucket,
                                                          fingerprint_of(count, no_bucket))),
                              deadline);
    }

  private:
    /// A buffer as a list of pieces of one size; the last may be smaller.
    struct pieces {
        buffer& of;
        std::byte const* in;
        std::byte* out;
        std::size_t total; // elements
        std::size_t count;

        std::size_t available() const noexcept { return count; }
        std::size_t elements(std::size_t n) const noexcept {
            return n + 1 < count ? of.piece_ : total - (count - 1) * of.piece_;
        }
        bool bounced(std::size_t) const noexcept { return true; }
        std::byte* gather(std::size_t, std::uint64_t) const noexcept { return nullptr; }
        template <class Add> void for_each_segment(std::size_t n, Add const& add) const noexcept {
            std::size_t const begin = n * of.piece_ * of.element_bytes_;
            add(segment{in + begin, out + begin, 0, elements(n)});
        }
        std::span<std::byte const> next_in_slot(std::size_t n, std::size_t) const noexcept {
            n += memory_map::bounce_slots;
            if (n >= count) return {};
            return {in + n * of.piece_ * of.element_bytes_, elements(n) * of.element_bytes_};
        }
        template <class Session>
        void submit(Session& session, std::size_t n, piece_place const& at) noexcept {
            bool const whole = elements(n) == of.piece_;
            of.submitted_ = session.submit(execution_of(
                whole ? of.whole_ : of.tail_, whole ? of.whole_shards_.data() : of.tail_shards_.data(), at,
                no_bucket, fingerprint_of(total, no_bucket - n)));
        }
    };

    template <class Session>
    status reduce_pieces(Session& session, std::byte const* in, std::byte* out, std::size_t count,
                         time_point deadline) {
        pieces list{*this, in, out, count, divide_up(count, piece_)};
        if (std::size_t const tail = list.elements(list.count - 1); tail != piece_)
            session_.template divide<Sharding>(tail, tail_, tail_shards_);
        bounce_.begin(session_.requested());
        bounce_.drain(session, list, list.count, deadline);
        if (status ended = session.fail_with(store_.failed()); !ended.ok()) return ended;
        return session.finish(submitted_, deadline);
    }

    session_base& session_;
    Store& store_;
    bounce_buffers<Store>& bounce_;
    std::size_t const element_bytes_;
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
