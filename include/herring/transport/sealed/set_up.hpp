// herring: what the ranks tell each other before they seal messages: a nonce each, and how much memory they take.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_SEALED_SET_UP_HPP
#define HERRING_TRANSPORT_SEALED_SET_UP_HPP

#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/memory_check.hpp"
#include "herring/control/world.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/transport/sealed/ciphertexts.hpp"
#include "herring/transport/sealed/keys.hpp"
#include "herring/transport/transport.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// The keys of one transport: collective.
///
/// Blocks:  in the constructor, until all ranks are there.
/// Errors:  `bad_state` for a world whose ranks have not proved to have a secret; `no_resources` on all ranks, where one lacks
///          memory for what it is about to seal; `mismatch` where a rank makes another call.
class sealed_set_up {
  public:
    HERRING_SETUP sealed_set_up(world& ranks, transport_needs const& wanted) : ranks_(ranks) {
        if (!ranks.has_secret())
            throw error(
                errc::bad_state, ranks.rank(), -1, "construction",
                "transport::sealed has nothing to make keys of: the ranks of this world have no secret, so "
                "who listens could make the same keys; give all ranks one (HERRING_SECRET_FILE, "
                "HERRING_SECRET, or "
                "join_options::secret), made by: openssl rand -hex 32");
        if (wanted.peers.empty()) return;
        word const mine{
            word_of_sealed, random_nonce(),
            ciphertexts::bytes_for(wanted.peers.size() * wanted.sends_per_peer, wanted.largest_message)};
        gather_result const said = ranks.all_gather(std::as_bytes(std::span(&mine, 1)), wanted.timeout);
        nonces_ = fixed_array<sealed_nonce>(said.size());
        std::uint64_t most = 0;
        for (std::size_t r = 0; r < nonces_.size(); ++r) {
            word of{};
            if (!wire::read_value(std::as_const(said)[r], of) || of.kind != word_of_sealed)
                throw error(
                    errc::mismatch, ranks.rank(), static_cast<int>(r), "construction",
                    "it makes another call than a transport::sealed; let every rank make the same calls "
                    "in the same order");
            nonces_[r] = of.nonce;
            most = std::max(most, of.bytes);
        }
        if (most >= memory_worth_asking_for) check_memory(ranks, static_cast<std::size_t>(mine.bytes));
    }

    /// The first key of the messages from `sender` to `receiver`, one of which is this rank.
    HERRING_SETUP secret_key key(int sender, int receiver) const {
        return first_sealed_key(ranks_, sender, receiver, nonces_[static_cast<std::size_t>(sender)],
                                nonces_[static_cast<std::size_t>(receiver)]);
    }

  private:
    static constexpr std::uint64_t word_of_sealed = 0x3164'656c'6165'7300; // "\0sealed1"
    struct word {
        std::uint64_t kind = 0;
        sealed_nonce nonce{};
        std::uint64_t bytes = 0;
    };

    world& ranks_;
    fixed_array<sealed_nonce> nonces_; // by rank
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_SEALED_SET_UP_HPP
