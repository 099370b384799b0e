// herring: the proofs of two ends that they share a secret, and the keys that follow. No I/O.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_NET_HANDSHAKE_HPP
#define HERRING_NET_HANDSHAKE_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/seal_provider.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"
#include "herring/net/frame.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail::wire {

inline constexpr std::size_t salt_bytes = 16, nonce_bytes = 32, proof_bytes = 32;
using salt = std::array<std::byte, salt_bytes>;
using nonce = std::array<std::byte, nonce_bytes>;
using proof = std::array<std::byte, proof_bytes>; ///< zero where there is no secret

/// Flags of an end in its challenge or hello: bit 0, it has a secret; bit 1, it seals. No end seals without a
/// secret.
constexpr std::uint8_t write_flags(bool has_secret, bool seals) noexcept {
    return static_cast<std::uint8_t>((has_secret ? 1 : 0) | (seals ? 2 : 0));
}
constexpr bool read_flags(std::uint8_t flags, bool& has_secret, bool& seals) noexcept {
    has_secret = (flags & 1) != 0;
    seals = (flags & 2) != 0;
    return flags == 0 || flags == 1 || flags == 3;
}

/// The acceptor's reply to the first message of a dialler.
struct challenge {
    wire::salt salt{};   ///< of the acceptor, the same for all connections
    wire::nonce nonce{}; ///< of this connection; where `seals`, a public key
    bool has_secret = false;
    bool seals = false;

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        out.append(salt);
        out.append(nonce);
        append<std::uint8_t>(out, write_flags(has_secret, seals));
        return out;
    }
    HERRING_SETUP bool read(std::span<std::byte const> from) noexcept {
        reader in{from};
        in.bytes(salt);
        in.bytes(nonce);
        bool const sound = read_flags(in.number<std::uint8_t>(), has_secret, seals);
        return in.done() && sound;
    }
};

/// Splits a body into the proof at its end and the bytes before. False: the body is shorter than a proof.
HERRING_SETUP inline bool split_proof(std::span<std::byte const> body, std::span<std::byte const>& before,
                                      wire::proof& at_end) noexcept {
    if (body.size() < proof_bytes) return false;
    before = body.first(body.size() - proof_bytes);
    reader in{body.last(proof_bytes)};
    in.bytes(at_end);
    return in.ok;
}

/// The messages of one handshake, each with its length in front, under one secret and the name of one
/// protocol.
///
/// A proof is an HMAC of all messages, under a key of the prover's role. Where both ends have put a fresh
/// nonce into the messages, a recorded proof proves nothing later, and a proof that is sent back to its
/// sender, or that another protocol made, proves nothing at all.
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

    /// `more`: the bytes that are sent with the proof.
    HERRING_SETUP sha256_digest prove(std::string_view role, std::span<std::byte const> more) const {
        secret_key const key = hkdf_key(secret_, text({protocol_, " proof"}), bytes_of(role));
        byte_buffer all;
        add(all, bytes_of(role));
        add(all, seen_);
        add(all, more);
        return hmac_sha256(key.bytes()).update(all).finish();
    }

    /// Returns the key of these messages and this purpose.
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

/// The names of a protocol and of its ends: literals, which go into all proofs and keys.
struct handshake_names {
    std::string_view protocol, dialler, acceptor;
};

/// One handshake, as both ends have seen it, under one secret.
///
///     dialler → acceptor   request
///     acceptor → dialler   challenge {salt, nonce}
///     dialler → acceptor   hello {nonce, who it is}, proof_of_dialler
///     acceptor → dialler   admission {proof_of_acceptor, a key, wrapped}     or refusal, proof_of_refusal
///
/// The dialler proves itself first, so that an end that only asks gets no proof. Both nonces are in every
/// proof. The keys of the connection, one a direction, and the one that wraps the key that is handed over
/// come from the same bytes, so no two handshakes have one in common.
///
/// Whoever has the secret and the traffic can read that key. Where both ends seal, their nonces are public
/// keys of an exchange, and the key on which they agree goes into all proofs and keys: then secret and
/// traffic are not enough.
/// Cost:     some 10 microseconds, and 0.1 ms of an exchange.
class handshake {
  public:
    /// `of_secret`: `secret::key` with the acceptor's salt. `challenge`, `hello`: bodies as sent, the latter
    /// without its proof. `shared`: by the exchange, where both ends seal.
    HERRING_SETUP handshake(handshake_names const& names, secret_key const& of_secret,
                            std::span<std::byte const> challenge, std::span<std::byte const> hello,
                            secret_key const* shared = nullptr)
        : names_(names), seen_(shared == nullptr ? secret_key(of_secret.bytes())
                                                 : hkdf_extract(of_secret.bytes(), shared->bytes()),
                               names.protocol, {challenge, hello}) {}

    HERRING_SETUP proof proof_of_dialler() const { return seen_.prove(names_.dialler, {}); }
    /// `with`: the bytes of the admission that the proof covers.
    HERRING_SETUP proof proof_of_acceptor(std::span<std::byte const> with) const {
        return seen_.prove(names_.acceptor, with);
    }
    /// The proof of a refusal, to a dialler that has proved itself: of `front`, and the body without the
    /// proof.
    HERRING_SETUP proof proof_of_refusal(std::span<std::byte const> front,
                                         std::span<std::byte const> body) const {
        byte_buffer all;
        all.append(front);
        all.append(body);
        return seen_.prove(text({names_.acceptor, " refuses"}), all);
    }

    /// Wraps the key that the acceptor hands over, or unwraps it. Once a handshake.
    HERRING_SETUP void wrap(std::span<std::byte> key) const { seen_.wrap(key); }

    /// The key of the handshakes over connections that take the place of this one.
    HERRING_SETUP secret_key resumption_key() const { return seen_.key("resumption"); }

    /// Returns the keys of the messages that follow.
    HERRING_SETUP message_keys keys(bool at_acceptor) const {
        secret_key const to = seen_.key(text({"to ", names_.acceptor}));
        secret_key const from = seen_.key(text({"from ", names_.acceptor}));
        return at_acceptor ? message_keys(from, to) : message_keys(to, from);
    }
    HERRING_SETUP frame_seal seal(bool at_acceptor, seal_provider const& by) const {
        auto const direction = [&](bool to_acceptor) {
            return seal_direction(
                by, to_acceptor != at_acceptor,
                seen_.key(text({to_acceptor ? "sealed to " : "sealed from ", names_.acceptor})));
        };
        return {direction(!at_acceptor), direction(at_acceptor)};
    }

  private:
    handshake_names names_;
    transcript seen_;
};

/// Returns the handshake of a dialler whose proof is `shown`, under that of an acceptor's secrets that proves
/// it, if one does. `of_acceptor`: its salt. The other parameters are those of `handshake`.
HERRING_SETUP inline std::optional<handshake> proven_by(handshake_names const& names, secrets const& known,
                                                        wire::salt const& of_acceptor,
                                                        std::span<std::byte const> challenge,
                                                        std::span<std::byte const> hello, proof const& shown,
                                                        secret_key const* shared = nullptr) {
    for (secret const* const of : {&known.proves, known.also ? &*known.also : nullptr}) {
        if (of == nullptr) continue;
        std::optional<handshake> with(std::in_place, names, of->key(of_acceptor), challenge, hello, shared);
        if (equal_in_constant_time(with->proof_of_dialler(), shown)) return with;
    }
    return {};
}

/// A dialler's end of one handshake, from its hello until the acceptor has admitted it.
class dialler_handshake {
  public:
    /// Writes the reply to `asked`, which came as `challenge`: `mine` with a fresh nonce, and a proof under
    /// `by`, of zeros where `by` is nullptr: then neither end proves anything. `seals`: where both ends seal.
    /// False: the public key of `asked` leads to no key.
    template <class Hello>
    HERRING_SETUP bool reply(handshake_names const& names, byte_buffer& out,
                             std::span<std::byte const> challenge, wire::challenge const& asked, Hello mine,
                             seal_provider const* seals, secret_key const* by) {
        mine.nonce = random_nonce();
        secret_key shared;
        if (seals != nullptr) {
            key_exchange const exchange(*seals);
            if (!exchange.agree(asked.nonce, shared)) return false;
            mine.nonce = exchange.shown();
        }
        out = mine.write();
        proof shown{};
        if (by != nullptr) {
            seen_.emplace(names, *by, challenge, out, seals != nullptr ? &shared : nullptr);
            shown = seen_->proof_of_dialler();
        }
        out.append(shown);
        return true;
    }

    /// True if the dialler has proved itself, and so expects a proof.
    bool begun() const noexcept { return seen_.has_value(); }
    /// True if `shown` is the acceptor's proof. False where nothing has begun.
    HERRING_SETUP bool proves(proof const& shown, std::span<std::byte const> with) const {
        return seen_ && equal_in_constant_time(shown, seen_->proof_of_acceptor(with));
    }
    /// True if a refusal has the acceptor's proof; then `words` is its body without the proof.
    HERRING_SETUP bool proves_refusal(std::span<std::byte const> front, std::span<std::byte const> body,
                                      std::span<std::byte const>& words) const {
        proof shown{};
        std::span<std::byte const> before;
        if (!seen_ || !split_proof(body, before, shown) ||
            !equal_in_constant_time(shown, seen_->proof_of_refusal(front, before)))
            return false;
        words = before;
        return true;
    }
    /// The keys of the connection. The handshake has begun.
    handshake const& keys() const noexcept { return *seen_; }
    void reset() noexcept { seen_.reset(); }

  private:
    std::optional<handshake> seen_;
};

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_NET_HANDSHAKE_HPP
