// herring: the keys of transport::sealed: how ranks agree on them, and how the next follows from the last.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_SEALED_KEYS_HPP
#define HERRING_TRANSPORT_SEALED_KEYS_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/memory_check.hpp"
#include "herring/control/world.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"
#include "herring/transport/sealed/ciphertexts.hpp"
#include "herring/transport/transport.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// 32 random bytes of a rank, drawn for one transport. With the nonce of the other end they make its keys
/// unique.
using sealed_nonce = std::array<std::byte, 32>;

/// The direction of a pair whose messages a key seals, alike at both ends: `upwards` is from the lower rank.
enum class sealed_direction : std::uint32_t { upwards = 1, downwards = 2 };
constexpr sealed_direction direction_of(int sender, int receiver) noexcept {
    return sender < receiver ? sealed_direction::upwards : sealed_direction::downwards;
}

/// Returns the first key of the messages from `sender` to `receiver`, one of which is this rank.
HERRING_SETUP inline secret_key first_sealed_key(world const& ranks, int sender, int receiver,
                                                 sealed_nonce const& of_sender,
                                                 sealed_nonce const& of_receiver) {
    // Layout: direction 0, nonce of the lower rank 4, of the higher one 36.
    std::array<std::byte, 68> context;
    put(context.data(), static_cast<std::uint32_t>(direction_of(sender, receiver)));
    std::memcpy(context.data() + (sender < receiver ? 4 : 36), of_sender.data(), of_sender.size());
    std::memcpy(context.data() + (sender < receiver ? 36 : 4), of_receiver.data(), of_receiver.size());
    secret_key key;
    ranks.derive_key(key.bytes(), "herring sealed transport", sender == ranks.rank() ? receiver : sender,
                     context);
    return key;
}

/// Binary logarithm, rounded up, of `window`: the number of messages that may be in flight, in any order.
constexpr int least_generation_bits(std::size_t window) noexcept {
    return static_cast<int>(std::bit_width(window - 1));
}

/// Binary logarithm of the number of messages under one key: at most 2^32 blocks of AES, where a message has
/// those of the largest payload, two of its own and three of the covered parts; but at least `window`, the
/// messages in flight in any order, so that two keys are enough at any time. Payloads are 64 MiB at most, so
/// the second bound hardly ever counts.
constexpr int sealed_generation_bits(std::size_t largest_message, std::size_t window) noexcept {
    std::uint64_t const blocks = (std::uint64_t{largest_message} + 15) / 16 + 5;
    int const bounded = 63 - std::countl_zero((std::uint64_t{1} << 32) / blocks);
    return std::max(bounded, least_generation_bits(window));
}

/// The keys of one direction, one generation after another. Each key is a one-way function of the last.
///
/// Lifetime: keys of earlier generations are erased.
class sealed_key_chain {
  public:
    sealed_key_chain() = default;
    explicit sealed_key_chain(secret_key first) noexcept : link_(std::move(first)) {}

    std::uint64_t generation() const noexcept { return generation_; }
    secret_key key() const noexcept { return hkdf_key(link_, "herring sealed key"); }
    void advance() noexcept {
        link_ = hkdf_key(link_, "herring sealed next");
        ++generation_;
    }

  private:
    secret_key link_;
    std::uint64_t generation_ = 0;
};

/// Agrees on the keys of one transport; collective.
///
/// Blocks:  in the constructor, until all ranks have called it.
/// Errors:  `bad_state` for a world whose ranks have not proved a secret; `no_resources` on all ranks if one
///          lacks memory for its ciphertexts; `mismatch` where a rank makes another call.
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
        gather_result const all = ranks.all_gather(std::as_bytes(std::span(&mine, 1)), wanted.timeout);
        nonces_ = fixed_array<sealed_nonce>(all.size());
        std::uint64_t most = 0;
        for (std::size_t r = 0; r < nonces_.size(); ++r) {
            word other{};
            if (!wire::read_value(std::as_const(all)[r], other) || other.kind != word_of_sealed)
                throw error(
                    errc::mismatch, ranks.rank(), static_cast<int>(r), "construction",
                    "it makes another call than a transport::sealed; let every rank make the same calls "
                    "in the same order");
            nonces_[r] = other.nonce;
            most = std::max(most, other.bytes);
        }
        if (most >= memory_worth_asking_for) check_memory(ranks, static_cast<std::size_t>(mine.bytes));
    }

    /// Returns the first key of the messages from `sender` to `receiver`, one of which is this rank.
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

#endif // HERRING_TRANSPORT_SEALED_KEYS_HPP
