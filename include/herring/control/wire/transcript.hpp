// herring: what two ends have sent each other, as the context of proofs and keys under a secret that they share. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_TRANSCRIPT_HPP
#define HERRING_CONTROL_WIRE_TRANSCRIPT_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/control/wire/codec.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace HERRING_NAMESPACE::detail::wire {

/// The messages of one handshake, each with its length in front, under one secret and the name of one protocol.
///
/// A proof is an HMAC, under a key of the prover's role, of all of them. Where both ends have put a fresh nonce into them, what was
/// recorded proves nothing later, and what comes back to its sender proves nothing at all; nor does a proof of another protocol.
/// Lifetime: copies the key; `protocol` is a literal.
/// Cost:     some microseconds each.
class transcript {
  public:
    HERRING_SETUP transcript(secret_key const& secret, std::string_view protocol,
                             std::initializer_list<std::span<std::byte const>> seen)
        : secret_(secret.bytes()), protocol_(protocol) {
        add(seen_, bytes_of(protocol));
        for (std::span<std::byte const> const each : seen) add(seen_, each);
    }

    /// `more`: what is sent with the proof.
    HERRING_SETUP sha256_digest prove(std::string_view role, std::span<std::byte const> more) const {
        secret_key const key = hkdf_key(secret_, text({protocol_, " proof"}), bytes_of(role));
        byte_buffer all;
        add(all, bytes_of(role));
        add(all, seen_);
        add(all, more);
        return hmac_sha256(key.bytes()).update(all).finish();
    }

    /// Of these messages and this purpose, and no other.
    HERRING_SETUP secret_key key(std::string_view purpose) const {
        return hkdf_key(secret_, text({protocol_, " ", purpose}), seen_);
    }

    /// Wraps a key of at most 32 bytes, or unwraps it. Once a transcript.
    HERRING_SETUP void wrap(std::span<std::byte> other) const {
        secret_key const with = key("wrap");
        for (std::size_t i = 0; i < other.size() && i < secret_key::size; ++i) other[i] ^= with.bytes()[i];
    }

  private:
    static void add(byte_buffer& to, std::span<std::byte const> part) {
        append<std::uint64_t>(to, part.size());
        to.append(part);
    }

    secret_key secret_;
    std::string_view protocol_;
    byte_buffer seen_;
};

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_CONTROL_WIRE_TRANSCRIPT_HPP
