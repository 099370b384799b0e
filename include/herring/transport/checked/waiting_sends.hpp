// herring: sends that a decorated transport has not taken yet, with their envelopes, in order.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_CHECKED_WAITING_SENDS_HPP
#define HERRING_TRANSPORT_CHECKED_WAITING_SENDS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/transport/checked/envelope.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

struct waiting_send {
    std::uint64_t tag = 0;
    std::span<std::byte const> from{};
    std::uint64_t token = 0;
    checked_envelope::buffer envelope{};
};

/// Of one peer, in the order in which they were posted: a ring.
class waiting_sends {
  public:
    waiting_sends() = default;
    explicit waiting_sends(std::size_t sends) : ring_(std::bit_ceil(sends + 1)) {}

    bool empty() const noexcept { return first_ == end_; }
    bool full() const noexcept { return end_ - first_ == ring_.size(); }
    waiting_send const& front() const noexcept { return ring_[first_ & (ring_.size() - 1)]; }
    void push(waiting_send const& one) noexcept { ring_[end_++ & (ring_.size() - 1)] = one; }
    void pop() noexcept { ++first_; }
    /// Returns how many there were.
    std::size_t clear() noexcept {
        std::size_t const count = end_ - first_;
        first_ = end_;
        return count;
    }

  private:
    fixed_array<waiting_send> ring_;
    std::size_t first_ = 0;
    std::size_t end_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_CHECKED_WAITING_SENDS_HPP
