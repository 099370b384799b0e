// herring: the cryptographic library of sealed control connections, as a table of functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_SEAL_PROVIDER_HPP
#define HERRING_CRYPTO_SEAL_PROVIDER_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/secret_key.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE::detail {

inline constexpr std::size_t seal_nonce_bytes = 12, seal_tag_bytes = 16;
using seal_nonce = std::array<std::byte, seal_nonce_bytes>;
using exchange_key = std::array<std::byte, 32>; ///< public key of X25519

/// Functions of a library: an authenticated cipher and a key exchange. The core names no library: a header of
/// the component `sealed` makes the table, so only programs that include that header need libcrypto. For
/// control messages only; no path that moves tensors uses it.
///
/// `Library` is a class with `check`, `cipher` and `exchange`; one that lacks a function does not compile.
/// Errors:   `check(rank)` throws `unsupported`; the others return nullptr or false.
class seal_provider {
    // Not lambdas: g++ would warn that their parameters shadow globals of the program.
    template <class Library> struct call {
        using cipher = typename Library::cipher;
        using exchange = typename Library::exchange;

        static void* make_exchange(exchange_key& shown) noexcept {
            exchange* const self = new (std::nothrow) exchange;
            if (self == nullptr || self->begin(shown)) return self;
            delete self;
            return nullptr;
        }
        static bool agree(void* self, exchange_key const& other, secret_key& shared) noexcept {
            return static_cast<exchange*>(self)->agree(other, shared);
        }
        static void drop_exchange(void* self) noexcept { delete static_cast<exchange*>(self); }

        static void* make_cipher(bool seals, secret_key const& key) noexcept {
            cipher* const self = new (std::nothrow) cipher;
            if (self == nullptr || self->begin(seals, key)) return self;
            delete self;
            return nullptr;
        }
        static bool take(void* self, secret_key const& key) noexcept {
            return static_cast<cipher*>(self)->take(key);
        }
        static bool seal(void* self, seal_nonce const& once, std::span<std::byte> data,
                         std::byte* tag) noexcept {
            return static_cast<cipher*>(self)->seal(once, data, tag);
        }
        static bool open(void* self, seal_nonce const& once, std::span<std::byte> data,
                         std::byte const* tag) noexcept {
            return static_cast<cipher*>(self)->open(once, data, tag);
        }
        static void drop_cipher(void* self) noexcept { delete static_cast<cipher*>(self); }
    };

  public:
    template <class Library>
    constexpr explicit seal_provider(std::type_identity<Library>) noexcept
        : check(Library::check), make_exchange(call<Library>::make_exchange), agree(call<Library>::agree),
          drop_exchange(call<Library>::drop_exchange), make_cipher(call<Library>::make_cipher),
          take(call<Library>::take), seal(call<Library>::seal), open(call<Library>::open),
          drop_cipher(call<Library>::drop_cipher) {}

    void (*const check)(int rank);
    void* (*const make_exchange)(exchange_key& shown) noexcept;
    bool (*const agree)(void* exchange, exchange_key const& other, secret_key& shared) noexcept;
    void (*const drop_exchange)(void* exchange) noexcept;
    void* (*const make_cipher)(bool seals, secret_key const& key) noexcept;
    bool (*const take)(void* cipher, secret_key const& key) noexcept;
    bool (*const seal)(void* cipher, seal_nonce const& once, std::span<std::byte> data,
                       std::byte* tag) noexcept;
    bool (*const open)(void* cipher, seal_nonce const& once, std::span<std::byte> data,
                       std::byte const* tag) noexcept;
    void (*const drop_cipher)(void* cipher) noexcept;
};

template <class Library> inline constexpr seal_provider seal_provider_of{std::type_identity<Library>{}};

/// The table for HERRING_CONTROL=sealed, set before main() by the header that makes it. nullptr: no file of
/// the program includes that header.
inline std::atomic<seal_provider const*> linked_seal_provider{nullptr};

/// An authenticated cipher under one key, in one direction; works in place.
///
/// Lifetime: movable; the library erases what it derived from the key.
class seal_cipher {
  public:
    seal_cipher() = default;
    seal_cipher(seal_provider const& by, bool seals, secret_key const& key) noexcept
        : by_(&by), self_(by.make_cipher(seals, key)) {}
    seal_cipher(seal_cipher&& other) noexcept : by_(other.by_), self_(std::exchange(other.self_, nullptr)) {}
    seal_cipher& operator=(seal_cipher&& other) noexcept {
        std::swap(by_, other.by_);
        std::swap(self_, other.self_);
        return *this;
    }
    ~seal_cipher() {
        if (self_ != nullptr) by_->drop_cipher(self_);
    }

    /// Replaces the key. False, as for the functions below: the library failed.
    bool take(secret_key const& key) noexcept { return self_ != nullptr && by_->take(self_, key); }
    /// Seals `data`. `once`: never twice with one key. `tag`: 16 bytes.
    bool seal(seal_nonce const& once, std::span<std::byte> data, std::byte* tag) noexcept {
        return self_ != nullptr && by_->seal(self_, once, data, tag);
    }
    /// Opens `data`. False also where `data` is not what was sealed; its content is then undefined.
    bool open(seal_nonce const& once, std::span<std::byte> data, std::byte const* tag) noexcept {
        return self_ != nullptr && by_->open(self_, once, data, tag);
    }

  private:
    seal_provider const* by_ = nullptr;
    void* self_ = nullptr;
};

/// One end of a Diffie-Hellman exchange by X25519, for one handshake. The public key is fresh, so it is a
/// nonce too.
///
/// Lifetime: movable; the library erases the private key.
/// Source:   RFC 7748.
class key_exchange {
  public:
    key_exchange() = default;
    explicit key_exchange(seal_provider const& by) noexcept : by_(&by), self_(by.make_exchange(shown_)) {}
    key_exchange(key_exchange&& other) noexcept
        : shown_(other.shown_), by_(other.by_), self_(std::exchange(other.self_, nullptr)) {}
    key_exchange& operator=(key_exchange&& other) noexcept {
        std::swap(by_, other.by_);
        std::swap(self_, other.self_);
        std::swap(shown_, other.shown_);
        return *this;
    }
    ~key_exchange() {
        if (self_ != nullptr) by_->drop_exchange(self_);
    }

    /// True if the library has begun the exchange.
    bool begun() const noexcept { return self_ != nullptr; }
    exchange_key const& shown() const noexcept { return shown_; }
    /// Derives the shared key. False: the library failed, or `other` is a key whose shared secret everyone
    /// knows.
    bool agree(exchange_key const& other, secret_key& shared) const noexcept {
        return self_ != nullptr && by_->agree(self_, other, shared);
    }

  private:
    exchange_key shown_{};
    seal_provider const* by_ = nullptr;
    void* self_ = nullptr;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CRYPTO_SEAL_PROVIDER_HPP
