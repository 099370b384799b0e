// herring: sealed control connections: AES-256-GCM and X25519 of libcrypto, for `join`.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_SEALED_HPP
#define HERRING_JOIN_SEALED_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/crypto/aes_gcm.hpp"
#include "herring/crypto/seal_provider.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/join/join.hpp"
#include "herring/model/join_options.hpp"

#include <cstddef>
#include <span>
#include <utility>

#include <openssl/evp.h>

namespace HERRING_NAMESPACE {

namespace detail {

/// The model of a seal provider by libcrypto.
struct libcrypto_seals {
    class cipher {
      public:
        bool begin(bool seals, secret_key const& key) noexcept {
            try {
                with_ = aes_gcm(seals ? aes_gcm::does::seal : aes_gcm::does::open, key, -1);
                return true;
            } catch (...) {
                return false; // `check` has thrown the reason before, unless there is no memory
            }
        }
        bool take(secret_key const& key) noexcept { return with_.take(key); }
        bool seal(seal_nonce const& once, std::span<std::byte> data, std::byte* tag) noexcept {
            return with_.seal(once, {}, data, data.data(), tag);
        }
        bool open(seal_nonce const& once, std::span<std::byte> data, std::byte const* tag) noexcept {
            return with_.open(once, {}, data, tag);
        }

      private:
        aes_gcm with_;
    };

    class exchange {
      public:
        exchange() = default;
        exchange(exchange const&) = delete;
        exchange& operator=(exchange const&) = delete;
        ~exchange() { EVP_PKEY_free(own_); }

        HERRING_SETUP bool begin(exchange_key& shown) noexcept {
            EVP_PKEY_CTX* const context = EVP_PKEY_CTX_new_id(EVP_PKEY_X25519, nullptr);
            std::size_t size = shown.size();
            bool const good = context != nullptr && EVP_PKEY_keygen_init(context) == 1 &&
                              EVP_PKEY_keygen(context, &own_) == 1 &&
                              EVP_PKEY_get_raw_public_key(own_, chars(shown), &size) == 1 &&
                              size == shown.size();
            EVP_PKEY_CTX_free(context);
            return good;
        }
        /// Derives the shared key. False for keys of small order, which libcrypto refuses: they give zero
        /// with any private key.
        HERRING_SETUP bool agree(exchange_key const& other, secret_key& shared) const noexcept {
            EVP_PKEY* const peer =
                EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, chars(other), other.size());
            EVP_PKEY_CTX* const with = peer == nullptr ? nullptr : EVP_PKEY_CTX_new(own_, nullptr);
            std::size_t size = secret_key::size;
            bool const good = with != nullptr && EVP_PKEY_derive_init(with) == 1 &&
                              EVP_PKEY_derive_set_peer(with, peer) == 1 &&
                              EVP_PKEY_derive(with, chars(shared.bytes()), &size) == 1 &&
                              size == secret_key::size;
            EVP_PKEY_CTX_free(with);
            EVP_PKEY_free(peer);
            return good;
        }

      private:
        template <class Bytes> static unsigned char* chars(Bytes&& bytes) noexcept {
            return reinterpret_cast<unsigned char*>(bytes.data());
        }
        static unsigned char const* chars(exchange_key const& bytes) noexcept {
            return reinterpret_cast<unsigned char const*>(bytes.data());
        }

        EVP_PKEY* own_ = nullptr;
    };

    /// Throws `unsupported` if libcrypto lacks AES-256-GCM or X25519.
    HERRING_SETUP static void check(int rank) {
        aes_gcm const tried(aes_gcm::does::seal, secret_key(), rank);
        exchange_key shown{};
        exchange with;
        if (!with.begin(shown))
            throw error(errc::unsupported, rank, -1, "join",
                        "libcrypto gives no X25519, by which sealed control connections agree on keys; see "
                        "whether its "
                        "configuration (openssl list -public-key-algorithms) leaves it out");
    }
};

inline bool const libcrypto_is_linked = [] {
    linked_seal_provider.store(&seal_provider_of<libcrypto_seals>, std::memory_order_relaxed);
    return true;
}();

} // namespace detail

/// Returns the value of `join_options::control` that seals the control connections of `join`: from the
/// handshake on every control message is encrypted and authenticated by AES-256-GCM. Needs libcrypto (CMake:
/// `herring::sealed`).
///
/// Every rank has to ask for seals, by this function or by HERRING_CONTROL=sealed in a program that includes
/// this header. Nothing is negotiated: a rank and a rank 0 of which only one seals refuse each other by name.
///
/// Keys:     one per connection and direction, by HKDF from the handshake's messages, the secret, and an
///           exchange by X25519 whose private keys both ends forget: whoever records a job and learns its
///           secret later can read neither its control messages nor the data of `transport::sealed`.
/// Cost:     two multiplications on Curve25519 per join and end, some 0.1 ms; 0.6 us per control message.
/// Errors:   `join` throws `bad_argument` without a secret, `unsupported` without AES-256-GCM or X25519 in
///           libcrypto.
/// Example:  herring::world world = herring::join({.control = herring::sealed_control()});
inline control_protection sealed_control() noexcept {
    return control_protection(&detail::seal_provider_of<detail::libcrypto_seals>);
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_JOIN_SEALED_HPP
