// herring: what a frontend and a member prove to each other, for a control connection and for its lane. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ADMISSION_HPP
#define HERRING_ENSEMBLE_ADMISSION_HPP

#include "herring/base/config.hpp"
#include "herring/control/wire/message_keys.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/control/wire/transcript.hpp"
#include "herring/crypto/secret_key.hpp"

#include <array>
#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail::ensembles {

/// One member's handshake with a frontend, as both have seen it, under one secret.
///
///     member → frontend   knock
///     frontend → member   challenge {salt, nonce}
///     member → frontend   hello {nonce, who it is, its shape}, proof_of_member
///     frontend → member   proof_of_frontend, admit {the lane's key, wrapped, ...}      or refuse, proof_of_refusal
///
/// As `wire::handshake`: the member proves itself first, both nonces are in every proof, and each direction has a key of its own.
class admission_handshake {
  public:
    /// `of_secret`: `secret::key` with the frontend's salt. `challenge`, `hello`: bodies as sent, the latter without its proof.
    HERRING_SETUP admission_handshake(secret_key const& of_secret, std::span<std::byte const> challenge,
                                      std::span<std::byte const> hello)
        : seen_(of_secret, "herring ensemble 1", {challenge, hello}) {}

    HERRING_SETUP wire::proof proof_of_member() const { return seen_.prove("member", {}); }
    /// `admit`: its body as it is sent, without the proof.
    HERRING_SETUP wire::proof proof_of_frontend(std::span<std::byte const> admit) const {
        return seen_.prove("frontend", admit);
    }
    HERRING_SETUP wire::proof proof_of_refusal(std::span<std::byte const> refuse) const {
        return seen_.prove("frontend refuses", refuse);
    }
    /// Wraps the lane's key, or unwraps it. Once a handshake.
    HERRING_SETUP void wrap(std::span<std::byte> lane_key) const { seen_.wrap(lane_key); }

    /// Of the messages that follow.
    HERRING_SETUP wire::message_keys keys(bool at_frontend) const {
        secret_key const to = seen_.key("to frontend"), from = seen_.key("from frontend");
        return at_frontend ? wire::message_keys(from, to) : wire::message_keys(to, from);
    }

  private:
    wire::transcript seen_;
};

/// Proofs for the connection of a lane, under the key of its admission.
///
///     member → frontend   lane_hello {ticket, which lane, nonce}
///     frontend → member   lane_challenge {nonce}
///     member → frontend   lane_proof
///     frontend → member   lane_accept
class lane_handshake {
  public:
    HERRING_SETUP lane_handshake(secret_key const& of_admission, std::span<std::byte const> hello,
                                 std::span<std::byte const> challenge)
        : seen_(of_admission, "herring ensemble lane 1", {hello, challenge}) {}

    HERRING_SETUP wire::proof proof_of_member() const { return seen_.prove("member", {}); }
    HERRING_SETUP wire::proof proof_of_frontend() const { return seen_.prove("frontend", {}); }

  private:
    wire::transcript seen_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ADMISSION_HPP
