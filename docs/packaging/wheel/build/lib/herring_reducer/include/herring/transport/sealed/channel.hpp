// herring: both ends of one direction of a sealed pair: the sealer, and the opener.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_SEALED_CHANNEL_HPP
#define HERRING_TRANSPORT_SEALED_CHANNEL_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/crypto/aes_gcm.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/transport/received_counters.hpp"
#include "herring/transport/sealed/ciphertexts.hpp"
#include "herring/transport/sealed/keys.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// The parameters that both ends of a direction share.
struct sealed_route {
    int sender = -1;
    int receiver = -1;
    int generation_bits = 32; ///< a key seals 2^generation_bits messages
    std::uint32_t epoch = 0;  ///< of the world; always 0, as in frames

    std::uint64_t generation(std::uint64_t counter) const noexcept { return counter >> generation_bits; }
    /// Returns the nonce of a message, which is unique under its key.
    ///
    /// Layout: direction 0, counter 4.
    aes_gcm::nonce nonce(std::uint64_t counter) const noexcept {
        aes_gcm::nonce result;
        put(result.data(), static_cast<std::uint32_t>(direction_of(sender, receiver)));
        put(result.data() + 4, counter);
        return result;
    }
    sealed_beside::buffer beside(std::uint64_t tag, std::uint64_t counter,
                                 std::size_t length) const noexcept {
        return sealed_beside::of(tag, counter, length, sender, receiver, epoch);
    }
};

/// Seals the messages of one direction. Every call uses a new number, also if it fails.
class sealer {
  public:
    sealer() = default;
    HERRING_SETUP sealer(sealed_route const& route, secret_key first, int rank)
        : route_(route), keys_(std::move(first)), cipher_(aes_gcm::does::seal, keys_.key(), rank) {}

    /// Seals `from` into `to`, of the same size, and `envelope`, of 24 bytes. False: libcrypto failed.
    bool seal(std::uint64_t tag, std::span<std::byte const> from, std::byte* to,
              std::byte* envelope) noexcept {
        std::uint64_t const counter = next_++;
        if (route_.generation(counter) != keys_.generation() && !renew()) [[unlikely]]
            return false;
        put(envelope, counter);
        return cipher_.seal(route_.nonce(counter), route_.beside(tag, counter, from.size()), from, to,
                            sealed_envelope::tag_of(envelope));
    }

    std::uint64_t sealed() const noexcept { return next_; }

  private:
    [[gnu::noinline]] bool renew() noexcept {
        keys_.advance();
        return cipher_.take(keys_.key());
    }

    sealed_route route_{};
    std::uint64_t next_ = 0;
    sealed_key_chain keys_;
    aes_gcm cipher_;
};

enum class opened : std::uint8_t {
    fresh,
    repeated, ///< the message has come before
    missing,  ///< the message is genuine, but earlier ones are missing for good
    changed   ///< no message of this direction, or changed; the rest of the direction is lost
};

/// Opens the messages of one direction, in any order, and detects repeated ones. It holds two keys: the key
/// of the latest message and the one before, for late messages.
///
/// `receives`: most receives posted at once.
class opener {
  public:
    opener() = default;
    HERRING_SETUP opener(sealed_route const& route, secret_key first, std::size_t receives, int rank)
        : route_(route), received_(receives),
          keys_(std::move(first)), ciphers_{aes_gcm(aes_gcm::does::open, keys_.key(), rank),
                                            aes_gcm(aes_gcm::does::open, secret_key(), rank)} {}

    /// Opens `data` in place. `data` is valid only if the result is `fresh`.
    opened open(std::uint64_t tag, std::span<std::byte const> envelope, std::span<std::byte> data) noexcept {
        if (envelope.size() != sealed_envelope::bytes) return opened::changed;
        std::uint64_t const counter = sealed_envelope::counter_of(envelope.data());
        std::uint64_t const generation = route_.generation(counter);
        if (generation != keys_.generation() && !holds(generation)) [[unlikely]]
            // Its key is erased, so it cannot be verified: it may only be dropped.
            return generation < keys_.generation() && received_.seen(counter) ? opened::repeated
                                                                              : opened::changed;
        if (!ciphers_[generation & 1].open(route_.nonce(counter), route_.beside(tag, counter, data.size()),
                                           data, sealed_envelope::tag_of(envelope.data())))
            return opened::changed;
        switch (received_.take(counter)) {
        case counter_is::fresh:
            return opened::fresh;
        case counter_is::repeated:
            return opened::repeated;
        case counter_is::beyond:
            break;
        }
        return opened::missing;
    }

    /// True if a message with the number in this envelope has come before. The envelope is not verified.
    bool seen(std::span<std::byte const> envelope) const noexcept {
        return envelope.size() == sealed_envelope::bytes &&
               received_.seen(sealed_envelope::counter_of(envelope.data()));
    }

  private:
    /// True if the key of a generation is held. The next key replaces the last but one. A forged number can
    /// cause that once only: after a message that does not open, no further one is opened.
    [[gnu::noinline]] bool holds(std::uint64_t generation) noexcept {
        if (generation + 1 == keys_.generation()) return true;
        if (generation != keys_.generation() + 1) return false;
        keys_.advance();
        return ciphers_[generation & 1].take(keys_.key());
    }

    sealed_route route_{};
    received_counters received_;
    sealed_key_chain keys_;
    aes_gcm ciphers_[2]; // of even generations, and of odd ones
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_SEALED_CHANNEL_HPP
