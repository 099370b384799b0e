// herring: parts that the decorators of transports share: their needs, posted receives, sends that wait.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_DECORATED_HPP
#define HERRING_TRANSPORT_DECORATED_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/policy/composed_name.hpp"
#include "herring/policy/policy.hpp"
#include "herring/transport/transport.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Receives that a decorator has posted to its inner transport. Each has a place, which is its token there. A
/// message that the decorator drops has used up a receive, which is posted again.
///
/// Memory: 56 bytes a place; nothing is allocated after construction.
/// Cost:   O(1) a call, except `post_again`.
class posted_receives {
  public:
    struct entry {
        std::uint64_t tag = 0;
        std::span<std::byte> into{};
        std::uint64_t token = 0; ///< of the decorator's caller
        peer_id from{};
    };

    posted_receives() = default;
    explicit posted_receives(std::size_t most) : all_(most), free_(most), again_(most) {
        for (; free_places_ < most; ++free_places_) free_[free_places_] = free_places_;
    }

    bool full() const noexcept { return free_places_ == 0; }
    entry const& operator[](std::size_t place) const noexcept { return all_[place]; }

    /// Posts a receive. False: `inner` does not take it, or no place is free.
    template <class Inner>
    bool post(Inner& inner, peer_id from, std::uint64_t tag, std::span<std::byte> into,
              std::uint64_t token) noexcept {
        if (full()) return false;
        std::size_t const at = free_[free_places_ - 1];
        all_[at] = {tag, into, token, from};
        if (!inner.post_receive(from, tag, into, at)) return false;
        --free_places_;
        return true;
    }
    /// Frees a place: its message has come, or none will.
    void release(std::size_t place) noexcept { free_[free_places_++] = place; }

    /// Posts the receive of a place once more, in the same memory: now, or by `post_again`.
    template <class Inner> void repost(Inner& inner, std::size_t place) noexcept {
        entry const& posted = all_[place];
        if (inner.post_receive(posted.from, posted.tag, posted.into, place)) return;
        again_[waiting_++] = place;
    }
    /// True if `inner` has not taken all reposted receives yet.
    bool any_waiting() const noexcept { return waiting_ > 0; }
    /// Posts the receives that `inner` has not taken. They are dropped where `is_lost(peer)`.
    template <class Inner, class IsLost>
    HERRING_SETUP void post_again(Inner& inner, IsLost const& is_lost) noexcept {
        std::size_t const count = std::exchange(waiting_, 0);
        for (std::size_t i = 0; i < count; ++i)
            if (!is_lost(all_[again_[i]].from)) repost(inner, again_[i]); // writes at or before i
    }

  private:
    fixed_array<entry> all_;
    fixed_array<std::size_t> free_; // the first free_places_
    std::size_t free_places_ = 0;
    fixed_array<std::size_t> again_; // the first waiting_
    std::size_t waiting_ = 0;
};

/// The needs of the decorated transport, if it has any, followed by `Need`.
template <class Inner, class Need> struct needs_and { using type = needs<Need>; };
template <class Need, class Of> struct appended;
template <class Need, class... Those> struct appended<Need, needs<Those...>> {
    using type = needs<Those..., Need>;
};
template <class Inner, class Need>
requires requires { typename Inner::needs; }
struct needs_and<Inner, Need> : appended<Need, typename Inner::needs> {};

/// Sends to one peer that the inner transport has not taken, in the order of posting: a ring.
template <class Entry> class waiting_ring {
  public:
    waiting_ring() = default;
    explicit waiting_ring(std::size_t sends) : ring_(std::bit_ceil(sends + 1)) {}

    bool empty() const noexcept { return first_ == end_; }
    bool full() const noexcept { return end_ - first_ == ring_.size(); }
    Entry const& front() const noexcept { return ring_[first_ & (ring_.size() - 1)]; }
    void push(Entry const& one) noexcept { ring_[end_++ & (ring_.size() - 1)] = one; }
    void pop() noexcept { ++first_; }
    /// Removes all entries. Returns their number.
    std::size_t clear() noexcept {
        std::size_t const count = end_ - first_;
        first_ = end_;
        return count;
    }

  private:
    fixed_array<Entry> ring_;
    std::size_t first_ = 0;
    std::size_t end_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_DECORATED_HPP
