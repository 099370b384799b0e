// herring: a rank's end of its handshake with rank 0: what it replies to a challenge, and what proves rank 0 to it. No I/O.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_RANK_HANDSHAKE_HPP
#define HERRING_CONTROL_RENDEZVOUS_RANK_HANDSHAKE_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/control/wire/handshake.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/seal_provider.hpp"
#include "herring/crypto/secret_key.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace HERRING_NAMESPACE::detail::rendezvous {

using namespace wire;

/// A rank's end of one handshake (control/wire/handshake.hpp), from its hello, or its resume, until rank 0 has admitted it.
class rank_handshake {
  public:
    /// Writes the reply to `asked`, which came as `challenge`: `mine` with a fresh nonce, and a proof under `by`, of zeros where that is
    /// nullptr: nobody proves anything then. `seals`: where both ends seal. False: the public key of `asked` leads to no key.
    template <class Words>
    HERRING_SETUP bool reply(byte_buffer& out, std::span<std::byte const> challenge,
                             wire::challenge const& asked, Words mine, seal_provider const* seals,
                             secret_key const* by) {
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
            seen_.emplace(*by, challenge, out, seals != nullptr ? &shared : nullptr);
            shown = seen_->proof_of_rank();
        }
        out.append(shown);
        return true;
    }

    /// Whether it has proved itself, and so expects a proof.
    bool begun() const noexcept { return seen_.has_value(); }
    /// Whether rank 0 has proved itself. False where nothing has begun.
    HERRING_SETUP bool proves(wire::admit const& told) const {
        return seen_ && equal_in_constant_time(told.proof, seen_->proof_of_rank_0(told.wrapped));
    }
    /// Whether a refusal is rank 0's; `words` is its body without the proof then.
    HERRING_SETUP bool proves_refusal(std::uint64_t sequence, std::span<std::byte const> body,
                                      std::span<std::byte const>& words) const {
        proof shown{};
        std::span<std::byte const> before;
        if (!seen_ || !split_proof(body, before, shown) ||
            !equal_in_constant_time(shown, seen_->proof_of_refusal(sequence, before)))
            return false;
        words = before;
        return true;
    }
    /// The keys of the connection. It has begun.
    handshake const& keys() const noexcept { return *seen_; }
    void reset() noexcept { seen_.reset(); }

  private:
    std::optional<handshake> seen_;
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_RANK_HANDSHAKE_HPP
