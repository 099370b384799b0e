// herring: memory for sealed messages, a place each while its send is under way; and places of sends that are still to be made.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_SEALED_CIPHERTEXTS_HPP
#define HERRING_TRANSPORT_SEALED_CIPHERTEXTS_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/machine/private_memory.hpp"
#include "herring/transport/sealed/envelope.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// A message that was sealed: it is posted as it lies there, however often that takes.
struct sealed_send {
    std::uint64_t tag = 0;
    std::uint64_t token = 0;
    std::size_t length = 0;
    sealed_envelope::buffer envelope{};
};

/// Places of one size. The one that was given back last is taken first: it is in cache.
///
/// Memory:  bytes_for(places, largest), and 64 bytes a place.
/// Errors:  construction: `no_resources`.
class ciphertexts {
  public:
    static constexpr std::size_t bytes_for(std::size_t places, std::size_t largest) noexcept {
        return places * stride_for(largest);
    }

    ciphertexts() = default;
    HERRING_SETUP ciphertexts(std::size_t places, std::size_t largest, int rank)
        : stride_(stride_for(largest)), memory_(bytes_for(places, largest), rank), sends_(places),
          free_(places) {
        for (; free_places_ < places; ++free_places_) free_[free_places_] = places - 1 - free_places_;
    }

    bool empty() const noexcept { return free_places_ == 0; }
    std::size_t take() noexcept { return free_[--free_places_]; }
    void give_back(std::size_t place) noexcept { free_[free_places_++] = place; }

    sealed_send& operator[](std::size_t place) noexcept { return sends_[place]; }
    std::byte* at(std::size_t place) const noexcept { return memory_.data() + place * stride_; }
    std::span<std::byte> memory() const noexcept { return memory_.bytes(); }

  private:
    /// Whole lines, so that no two places share one.
    static constexpr std::size_t stride_for(std::size_t largest) noexcept { return round_up(largest, 64); }

    std::size_t stride_ = 0;
    private_memory memory_;
    fixed_array<sealed_send> sends_;
    fixed_array<std::size_t> free_; // the first free_places_
    std::size_t free_places_ = 0;
};

/// Places of one peer, in the order in which they were posted: a ring.
class waiting_places {
  public:
    waiting_places() = default;
    explicit waiting_places(std::size_t sends) : ring_(std::bit_ceil(sends + 1)) {}

    bool empty() const noexcept { return first_ == end_; }
    std::size_t front() const noexcept { return ring_[first_ & (ring_.size() - 1)]; }
    void push(std::size_t place) noexcept { ring_[end_++ & (ring_.size() - 1)] = place; }
    void pop() noexcept { ++first_; }
    /// Returns how many there were.
    std::size_t clear() noexcept {
        std::size_t const count = end_ - first_;
        first_ = end_;
        return count;
    }

  private:
    fixed_array<std::size_t> ring_;
    std::size_t first_ = 0;
    std::size_t end_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_SEALED_CIPHERTEXTS_HPP
