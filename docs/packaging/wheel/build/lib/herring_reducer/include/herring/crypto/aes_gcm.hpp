// herring: AES-256-GCM of libcrypto under one key, without an allocation for a message.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_AES_GCM_HPP
#define HERRING_CRYPTO_AES_GCM_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/crypto/secret_key.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include <openssl/evp.h>

namespace HERRING_NAMESPACE::detail {

/// Seals or opens messages by one context of libcrypto.
///
/// Shape:   nonce: 12 bytes, never twice with one key. Data: at most 1 GiB. Tag: 16 bytes.
/// Cost:    some 0.3 us a message and the processor's rate of AES-GCM; no allocation. libcrypto makes a few
///          calls through pointers of its own for each message.
/// Lifetime: movable; libcrypto erases what it derived from the key.
/// Errors:  the constructor throws `unsupported` where libcrypto has no AES-256-GCM. The functions return
///          false where libcrypto failed; open() also where the message is not what was sealed.
/// Source:  NIST SP 800-38D.
class aes_gcm {
  public:
    static constexpr std::size_t nonce_bytes = 12, tag_bytes = 16;
    using nonce = std::array<std::byte, nonce_bytes>;
    enum class does : int { open = 0, seal = 1 };

    aes_gcm() = default;
    HERRING_SETUP aes_gcm(does what, secret_key const& key, int rank) : context_(EVP_CIPHER_CTX_new()) {
        // The only allocations: fetches the cipher, and makes what a first message would allocate lazily.
        if (context_ != nullptr && EVP_CipherInit_ex(context_, EVP_aes_256_gcm(), nullptr, chars(key.bytes()),
                                                     chars(nonce{}), static_cast<int>(what)) == 1)
            return;
        EVP_CIPHER_CTX_free(context_);
        throw error(errc::unsupported, rank, -1, "construction",
                    "libcrypto gives no AES-256-GCM, by which messages are sealed; see whether its "
                    "configuration (openssl list -cipher-algorithms) leaves it out");
    }
    aes_gcm(aes_gcm&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}
    aes_gcm& operator=(aes_gcm&& other) noexcept {
        std::swap(context_, other.context_);
        return *this;
    }
    ~aes_gcm() { EVP_CIPHER_CTX_free(context_); }

    /// Replaces the key and erases the previous one.
    bool take(secret_key const& key) noexcept {
        return EVP_CipherInit_ex(context_, nullptr, nullptr, chars(key.bytes()), nullptr, -1) == 1;
    }

    /// Seals `from` into `to`, which is as large and is the same memory or does not overlap. The tag covers
    /// `beside` too, which is not sealed.
    bool seal(nonce const& once, std::span<std::byte const> beside, std::span<std::byte const> from,
              std::byte* to, std::byte* tag) noexcept {
        return begin(once, beside, from, to) && end(nullptr) &&
               EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_GET_TAG, tag_bytes, tag) == 1;
    }

    /// Opens `data` in place. False: it is not what was sealed, and its content is undefined.
    bool open(nonce const& once, std::span<std::byte const> beside, std::span<std::byte> data,
              std::byte const* tag) noexcept {
        return begin(once, beside, data, data.data()) && end(tag);
    }

  private:
    template <class Bytes> static unsigned char const* chars(Bytes const& bytes) noexcept {
        return reinterpret_cast<unsigned char const*>(bytes.data());
    }

    bool begin(nonce const& once, std::span<std::byte const> beside, std::span<std::byte const> from,
               std::byte* to) noexcept {
        int done = 0;
        return EVP_CipherInit_ex(context_, nullptr, nullptr, nullptr, chars(once), -1) == 1 &&
               EVP_CipherUpdate(context_, nullptr, &done, chars(beside), static_cast<int>(beside.size())) ==
                   1 &&
               (from.empty() || EVP_CipherUpdate(context_, reinterpret_cast<unsigned char*>(to), &done,
                                                 chars(from), static_cast<int>(from.size())) == 1);
    }
    /// `expected`: the tag that the message must have; nullptr when sealing.
    bool end(std::byte const* expected) noexcept {
        if (expected != nullptr && EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_SET_TAG, tag_bytes,
                                                       const_cast<std::byte*>(expected)) != 1)
            return false;
        unsigned char none[tag_bytes];
        int done = 0;
        return EVP_CipherFinal_ex(context_, none, &done) == 1;
    }

    EVP_CIPHER_CTX* context_ = nullptr;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CRYPTO_AES_GCM_HPP
