// herring: a toy in place of libcrypto, for tests of sealed control connections where that is not installed.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_TOY_SEALS_HPP
#define HERRING_TESTS_TOY_SEALS_HPP

#include "herring/base/bytes.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/seal_provider.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

/// Has the shape of an authenticated cipher and of an exchange, and no strength: HMACs as a stream and as a tag, and powers modulo a
/// prime of 61 bits.
struct toy_seals {
    static inline std::atomic<bool> fails{false};        ///< whatever is sealed next
    static inline std::atomic<std::uint64_t> ciphers{0}; ///< that there are
    static inline std::atomic<std::uint64_t> exchanges{0};

    class cipher {
      public:
        cipher() { ++ciphers; }
        cipher(cipher const&) = delete;
        ~cipher() { --ciphers; }
        bool begin(bool, herring::detail::secret_key const& key) noexcept { return take(key); }
        bool take(herring::detail::secret_key const& key) noexcept {
            under_.emplace(key.bytes());
            return true;
        }
        bool seal(herring::detail::seal_nonce const& once, std::span<std::byte> data,
                  std::byte* tag) noexcept {
            if (fails) return false;
            stream(once, data);
            std::memcpy(tag, tag_of(once, data).data(), herring::detail::seal_tag_bytes);
            return true;
        }
        bool open(herring::detail::seal_nonce const& once, std::span<std::byte> data,
                  std::byte const* tag) noexcept {
            if (std::memcmp(tag, tag_of(once, data).data(), herring::detail::seal_tag_bytes) != 0)
                return false;
            stream(once, data);
            return true;
        }

      private:
        herring::detail::sha256_digest tag_of(herring::detail::seal_nonce const& once,
                                              std::span<std::byte const> data) noexcept {
            return under_->update(herring::detail::bytes_of("tag")).update(once).update(data).finish();
        }
        void stream(herring::detail::seal_nonce const& once, std::span<std::byte> data) noexcept {
            for (std::size_t at = 0; at < data.size(); at += 32) {
                std::array<std::byte, 8> count{};
                herring::detail::put(count.data(), std::uint64_t{at});
                auto const pad = under_->update(once).update(count).finish();
                for (std::size_t i = at; i < std::min(at + 32, data.size()); ++i) data[i] ^= pad[i - at];
            }
        }
        std::optional<herring::detail::hmac_sha256> under_{};
    };

    class exchange {
      public:
        exchange() { ++exchanges; }
        exchange(exchange const&) = delete;
        ~exchange() { --exchanges; }
        bool begin(herring::detail::exchange_key& shown) noexcept {
            auto const random = herring::detail::random_nonce();
            own_ = herring::detail::get<std::uint64_t>(random.data()) % (prime - 3) + 2;
            shown = herring::detail::random_nonce(); // what is no number is there to be covered
            herring::detail::put(shown.data(), power(3, own_));
            return true;
        }
        bool agree(herring::detail::exchange_key const& other,
                   herring::detail::secret_key& shared) const noexcept {
            std::uint64_t const theirs = herring::detail::get<std::uint64_t>(other.data());
            if (theirs % prime < 2) return false;
            herring::detail::put(shared.bytes().data(), power(theirs % prime, own_));
            return true;
        }

      private:
        static constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;
        static std::uint64_t times(std::uint64_t a, std::uint64_t b) noexcept {
            std::uint64_t sum = 0;
            for (; b != 0; b >>= 1, a = a * 2 % prime)
                if ((b & 1) != 0) sum = (sum + a) % prime;
            return sum;
        }
        static std::uint64_t power(std::uint64_t of, std::uint64_t by) noexcept {
            std::uint64_t made = 1;
            for (; by != 0; by >>= 1, of = times(of, of))
                if ((by & 1) != 0) made = times(made, of);
            return made;
        }
        std::uint64_t own_ = 0;
    };

    static void check(int) {}

    static herring::detail::seal_provider const& table() noexcept {
        return herring::detail::seal_provider_of<toy_seals>;
    }
};

#endif // HERRING_TESTS_TOY_SEALS_HPP
