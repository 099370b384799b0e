// herring: what a rank and rank 0 prove to each other by a secret, and the keys of their connection. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_HANDSHAKE_HPP
#define HERRING_CONTROL_WIRE_HANDSHAKE_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/control/wire/codec.hpp"
#include "herring/control/wire/frame_seal.hpp"
#include "herring/control/wire/message_keys.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/control/wire/transcript.hpp"
#include "herring/crypto/seal_provider.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail::wire {

/// One rank's handshake with rank 0, as both have seen it, under one secret.
///
///     rank → 0   knock
///     0 → rank   challenge {salt, nonce}
///     rank → 0   hello {nonce, who it is}, proof_of_rank
///     0 → rank   admit {proof_of_rank_0, the world's key, wrapped}
///
/// A second connection of a rank that has been admitted (control/wire/message_log.hpp) has a handshake of its own, whose secret is
/// the `resumption_key` of the first one, and whose hello is a `resume {nonce, rank, incarnation, job, attempt}`. No key is handed over.
/// So only the process that was admitted can prove itself; who has the secret and not that handshake cannot.
///
/// The rank proves itself first, so that who only asks gets no proof. A proof is an HMAC, under a key of the prover's role, of
/// all that went before, each part with its length in front. Both nonces are in it, so what was recorded proves nothing
/// later, and what comes back to its sender proves nothing at all. The keys of the connection, one a direction, and the one
/// that wraps the world's key come from the same bytes, so no two handshakes have one in common.
///
/// Who has the secret and the traffic can read the world's key. Where both ends seal, their nonces are public keys of an exchange,
/// and what they share by that goes into all proofs and keys: then the secret and the traffic are not enough.
/// Cost:     some 10 microseconds, and 0.1 ms of an exchange.
class handshake {
  public:
    /// `of_secret`: `secret::key` with rank 0's salt. `challenge`, `hello`: bodies as sent, the latter without its proof.
    /// `shared`: by the exchange, where both ends seal.
    HERRING_SETUP handshake(secret_key const& of_secret, std::span<std::byte const> challenge,
                            std::span<std::byte const> hello, secret_key const* shared = nullptr)
        : seen_(shared == nullptr ? secret_key(of_secret.bytes())
                                  : hkdf_extract(of_secret.bytes(), shared->bytes()),
                "herring control 5", {challenge, hello}) {}

    HERRING_SETUP proof proof_of_rank() const { return seen_.prove("rank", {}); }
    /// `wrapped`: the world's key as it is sent.
    HERRING_SETUP proof proof_of_rank_0(std::span<std::byte const> wrapped) const {
        return seen_.prove("rank 0", wrapped);
    }
    /// Of a refusal, to a rank that has proved itself. `body`: without the proof.
    HERRING_SETUP proof proof_of_refusal(std::uint64_t sequence, std::span<std::byte const> body) const {
        byte_buffer said;
        append<std::uint64_t>(said, sequence);
        said.append(body);
        return seen_.prove("rank 0 refuses", said);
    }

    /// Wraps the world's key, or unwraps it. Once a handshake.
    HERRING_SETUP void wrap(std::span<std::byte> world_key) const { seen_.wrap(world_key); }

    /// By which this rank and rank 0 prove themselves over the connections that take the place of this one.
    HERRING_SETUP secret_key resumption_key() const { return seen_.key("resumption"); }

    /// Of the messages that follow.
    HERRING_SETUP message_keys keys(bool at_rank_0) const {
        secret_key const to_0 = seen_.key("to rank 0");
        secret_key const from_0 = seen_.key("from rank 0");
        return at_rank_0 ? message_keys(from_0, to_0) : message_keys(to_0, from_0);
    }
    HERRING_SETUP frame_seal seal(bool at_rank_0, seal_provider const& by) const {
        auto const direction = [&](bool to_0) {
            return seal_direction(by, to_0 != at_rank_0,
                                  seen_.key(to_0 ? "sealed to rank 0" : "sealed from rank 0"));
        };
        return {direction(!at_rank_0), direction(at_rank_0)};
    }

  private:
    transcript seen_;
};

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_CONTROL_WIRE_HANDSHAKE_HPP
