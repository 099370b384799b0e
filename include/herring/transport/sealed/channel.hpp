// herring: the two ends of one direction of a sealed pair: what seals messages, and what opens them, each of them once.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_SEALED_CHANNEL_HPP
#define HERRING_TRANSPORT_SEALED_CHANNEL_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/crypto/aes_gcm.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/transport/received_counters.hpp"
#include "herring/transport/sealed/envelope.hpp"
#include "herring/transport/sealed/keys.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// What both ends of a direction have in common.
struct sealed_route {
    int sender = -1;
    int receiver = -1;
    int generation_bits = 32; ///< a key seals 2^generation_bits messages
    std::uint32_t epoch = 0;  ///< of the world; constant today, as in frames

    std::uint64_t generation(std::uint64_t counter) const noexcept { return counter >> generation_bits; }
    /// Layout: direction 0, counter 4. No two messages under one key have the same.
    aes_gcm::nonce nonce(std::uint64_t counter) const noexcept {
        aes_gcm::nonce made;
        put(made.data(), static_cast<std::uint32_t>(direction_of(sender, receiver)));
        put(made.data() + 4, counter);
        return made;
    }
    sealed_beside::buffer beside(std::uint64_t tag, std::uint64_t counter,
                                 std::size_t length) const noexcept {
        return sealed_beside::of(tag, counter, length, sender, receiver, epoch);
    }
};

/// Seals the messages of one direction. Each has a number of its own, whether it succeeds or not.
class sealer {
  public:
    sealer() = default;
    HERRING_SETUP sealer(sealed_route const& route, secret_key first, int rank)
        : route_(route), keys_(std::move(first)), cipher_(aes_gcm::does::seal, keys_.key(), rank) {}

    /// `to`: as large as `from`. `envelope`: of 24 bytes. False: libcrypto failed.
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
    repeated, ///< it has come before
    missing,  ///< it is genuine, and others before it are missing for good
    changed   ///< it is no message of this direction, or was changed; the rest of the direction is lost
};

/// Opens the messages of one direction, in any order, and tells those that come again. It holds two keys: that of the latest
/// message and the one before, for messages that are late.
///
/// `receives`: that are posted at once, at most.
class opener {
  public:
    opener() = default;
    HERRING_SETUP opener(sealed_route const& route, secret_key first, std::size_t receives, int rank)
        : route_(route), received_(receives),
          keys_(std::move(first)), ciphers_{aes_gcm(aes_gcm::does::open, keys_.key(), rank),
                                            aes_gcm(aes_gcm::does::open, secret_key(), rank)} {}

    /// Opens `data` in place. It means something only if the result is `fresh`.
    opened open(std::uint64_t tag, std::span<std::byte const> envelope, std::span<std::byte> data) noexcept {
        if (envelope.size() != sealed_envelope::bytes) return opened::changed;
        std::uint64_t const counter = sealed_envelope::counter_of(envelope.data());
        std::uint64_t const generation = route_.generation(counter);
        if (generation != keys_.generation() && !holds(generation)) [[unlikely]]
            // Of a key that is gone: nobody can say that it is genuine, so all that it may do is to be dropped.
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

    /// Whether a message with this envelope has come before, as far as can be said without opening it.
    bool seen(std::span<std::byte const> envelope) const noexcept {
        return envelope.size() == sealed_envelope::bytes &&
               received_.seen(sealed_envelope::counter_of(envelope.data()));
    }

  private:
    /// The next key takes the place of the last but one. Who forges a number gets that far and no farther: a message that does
    /// not open is the last that is asked for.
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
