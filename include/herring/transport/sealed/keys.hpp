// herring: the keys of transport::sealed: one a pair, direction and transport, and after so many messages the next.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_SEALED_KEYS_HPP
#define HERRING_TRANSPORT_SEALED_KEYS_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/control/world.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// 32 random bytes of a rank, drawn for one transport: with those of the other end they make its keys no other transport's.
using sealed_nonce = std::array<std::byte, 32>;

/// Whose messages a key seals: by rank, so that both ends say the same.
enum class sealed_direction : std::uint32_t { upwards = 1, downwards = 2 };
constexpr sealed_direction direction_of(int sender, int receiver) noexcept {
    return sender < receiver ? sealed_direction::upwards : sealed_direction::downwards;
}

/// The first key of the messages from `sender` to `receiver`, one of which is this rank.
HERRING_SETUP inline secret_key first_sealed_key(world const& ranks, int sender, int receiver,
                                                 sealed_nonce const& of_sender,
                                                 sealed_nonce const& of_receiver) {
    // Layout: direction 0, nonce of the lower rank 4, of the higher one 36.
    std::array<std::byte, 68> context;
    put(context.data(), static_cast<std::uint32_t>(direction_of(sender, receiver)));
    std::memcpy(context.data() + (sender < receiver ? 4 : 36), of_sender.data(), of_sender.size());
    std::memcpy(context.data() + (sender < receiver ? 36 : 4), of_receiver.data(), of_receiver.size());
    secret_key key;
    ranks.derive_key(key.bytes(), "herring sealed transport", sender == ranks.rank() ? receiver : sender,
                     context);
    return key;
}

/// As many messages as may be under way, in any order, as a power of two.
constexpr int least_generation_bits(std::size_t window) noexcept {
    return static_cast<int>(std::bit_width(window - 1));
}

/// Messages under one key, as a power of two: no more than 2^32 blocks of AES, each with the largest payload, beside the two
/// that a message takes for itself and the three of what it covers; but as many as may be under way in any order, `window`, so
/// that no more than two keys are needed at once. Payloads are 64 MiB at most, so that the second hardly ever counts.
constexpr int sealed_generation_bits(std::size_t largest_message, std::size_t window) noexcept {
    std::uint64_t const blocks = (std::uint64_t{largest_message} + 15) / 16 + 5;
    int const bounded = 63 - std::countl_zero((std::uint64_t{1} << 32) / blocks);
    return std::max(bounded, least_generation_bits(window));
}

/// The keys of one direction, one generation after the other: from each follows the next, and from none one before it.
///
/// Lifetime: what it leaves is erased.
class sealed_key_chain {
  public:
    sealed_key_chain() = default;
    explicit sealed_key_chain(secret_key first) noexcept : link_(std::move(first)) {}

    std::uint64_t generation() const noexcept { return generation_; }
    secret_key key() const noexcept { return hkdf_key(link_, "herring sealed key"); }
    void advance() noexcept {
        link_ = hkdf_key(link_, "herring sealed next");
        ++generation_;
    }

  private:
    secret_key link_;
    std::uint64_t generation_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_SEALED_KEYS_HPP
