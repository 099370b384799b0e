// herring: the envelope of a sealed message, and memory for sealed messages while their sends are in flight.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_SEALED_CIPHERTEXTS_HPP
#define HERRING_TRANSPORT_SEALED_CIPHERTEXTS_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/machine/private_memory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// The envelope of a sealed message.
///
/// Layout: counter 0, tag of AES-GCM 8; little-endian.
struct sealed_envelope {
    static constexpr std::size_t bytes = 24;
    using buffer = std::array<std::byte, bytes>;

    static std::uint64_t counter_of(std::byte const* from) noexcept { return get<std::uint64_t>(from); }
    static std::byte const* tag_of(std::byte const* from) noexcept { return from + 8; }
    static std::byte* tag_of(std::byte* from) noexcept { return from + 8; }
};

/// The parts of a message beside its payload, as the bytes that its seal covers.
///
/// Layout: tag of the message 0, counter 8, length 16, sender 24, receiver 28, epoch 32; little-endian.
struct sealed_beside {
    using buffer = std::array<std::byte, 36>;

    static buffer of(std::uint64_t tag, std::uint64_t counter, std::uint64_t length, int sender, int receiver,
                     std::uint32_t epoch) noexcept {
        buffer result;
        put(result.data(), tag);
        put(result.data() + 8, counter);
        put(result.data() + 16, length);
        put(result.data() + 24, static_cast<std::uint32_t>(sender));
        put(result.data() + 28, static_cast<std::uint32_t>(receiver));
        put(result.data() + 32, epoch);
        return result;
    }
};

/// A sealed message: it is posted unchanged, also if the inner transport refuses it at first.
struct sealed_send {
    std::uint64_t tag = 0;
    std::uint64_t token = 0;
    std::size_t length = 0;
    sealed_envelope::buffer envelope{};
};

/// Places of one size for sealed payloads. The place that was returned last is taken first: it is in cache.
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
    /// Whole cache lines: no two places share one.
    static constexpr std::size_t stride_for(std::size_t largest) noexcept { return round_up(largest, 64); }

    std::size_t stride_ = 0;
    private_memory memory_;
    fixed_array<sealed_send> sends_;
    fixed_array<std::size_t> free_; // the first free_places_
    std::size_t free_places_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_SEALED_CIPHERTEXTS_HPP
