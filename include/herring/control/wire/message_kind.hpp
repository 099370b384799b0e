// herring: the kinds of control messages of a world, and how long a message of each may be. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_MESSAGE_KIND_HPP
#define HERRING_CONTROL_WIRE_MESSAGE_KIND_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/control/failure/deadlock.hpp"
#include "herring/control/world_times.hpp"
#include "herring/model/links.hpp"
#include "herring/net/frame.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail::wire {

inline constexpr std::uint16_t protocol_version = 7;

enum class message_kind : std::uint16_t {
    hello = 1, // rank → 0: its number and facts, and a proof that it has the secret
    refuse =
        2, // 0 → rank: a failure, why it may not join (sequence 1: not now); to a rank with a proof, a proof
    still_waiting_for = 3, // 0 → rank, while joining: text that names the missing ranks
    welcome = 4,           // 0 → rank: everyone is here, and the times that hold for all
    barrier = 5,           // rank → 0: has reached barrier `sequence`
    contribute = 6,        // rank → 0: its bytes for all_gather `sequence`
    collective_result = 7, // 0 → rank: collective `sequence` is complete; sizes and bytes of all
    deadline_passed = 8,   // rank → 0: its deadline for `sequence` has passed: asks for the missing ranks
    fail = 9,              // either way: a failure
    leave = 10,            // either way: leaves in order
    heartbeat = 11, // either way: a sign of life; `sequence` numbered messages are taken; to 0: signs_of_life
    suspicion =
        12,     // rank → 0: waits for a rank in vain (a failure; sequence 1: that rank is lost for certain)
    probe = 13, // 0 → rank: whom do you wait for? (probe `sequence`)
    probe_reply = 14, // rank → 0: for that rank (to probe `sequence`)
    blocked = 15,     // rank → 0: can do nothing but wait, and where
    knock = 16, // rank → 0: asks to join; the first message. A rank 0 of another version refuses it by name
    challenge = 17, // 0 → rank: salt and nonce, which the proof of the hello covers
    admit = 18,  // 0 → rank: a proof that it has the secret, and the world's key; later messages have tags
    resume = 19, // rank → 0: in place of a hello: this connection is to take the place of an earlier one
    resumed =
        20, // rank → 0: do so; 0 → rank: done. `sequence` numbered messages are taken: the next ones follow
    split = 21 // rank → 0: its colour and key for split `sequence`; the result has each rank's group, too
};

/// The sequence of a message that is about one world of those that a connection carries: the number of that
/// world (0: the joined one) in the upper 28 bits, and in the others a number within it.
///
/// barrier, contribute, split, collective_result, deadline_passed: of the collective; suspicion, fail: see
/// there; probe, probe_reply: of the probe; leave: 1 where this rank leaves all its worlds, and sends nothing
/// more.
inline constexpr unsigned number_bits = 36;
inline constexpr std::uint64_t most_number = (std::uint64_t{1} << number_bits) - 1,
                               most_world = (1u << 28) - 1;
constexpr std::uint64_t sequence_in(std::uint64_t world, std::uint64_t number) noexcept {
    return world << number_bits | number;
}
constexpr std::uint64_t world_of(std::uint64_t sequence) noexcept { return sequence >> number_bits; }
constexpr std::uint64_t number_of(std::uint64_t sequence) noexcept { return sequence & most_number; }

/// True if messages of that kind are counted, kept until they are acknowledged, and repeated over the next
/// connection: all messages from the welcome on, but heartbeats.
constexpr bool is_numbered(message_kind type) noexcept {
    switch (type) {
    case message_kind::barrier:
    case message_kind::contribute:
    case message_kind::split:
    case message_kind::collective_result:
    case message_kind::deadline_passed:
    case message_kind::fail:
    case message_kind::leave:
    case message_kind::suspicion:
    case message_kind::probe:
    case message_kind::probe_reply:
    case message_kind::blocked:
        return true;
    default:
        return false;
    }
}

/// Appends a whole message of this version.
HERRING_SETUP inline void append_message(byte_buffer& to, message_kind type, std::uint32_t rank,
                                         std::uint64_t sequence, std::span<std::byte const> body) {
    append_message(to, type, rank, sequence, body, protocol_version);
}

inline constexpr std::size_t hello_limit = 1152; // head and body, before the sender is identified
inline constexpr std::size_t blob_limit = std::size_t{64} << 20; // of one rank in one all_gather
inline constexpr std::uint32_t body_limit = 0x7FFFFFFFu;
inline constexpr std::size_t words_limit = 8192; // of a message that carries texts

/// Returns the bytes of a welcome to a world of `ranks`: job, times, links; node, machine, rack, rate and
/// role of each rank.
constexpr std::size_t welcome_bytes(std::size_t ranks) noexcept {
    return 8 + 8 * world_times::count + 4 * links::count + 1 + 17 * ranks;
}

/// The sender of a message, and when it came.
struct sender {
    std::size_t ranks = 0;  ///< of the world
    bool is_rank_0 = false; ///< or another rank, which writes to rank 0
    bool is_admitted =
        false; ///< the receiver has sent the welcome, or read it; before, and over a candidate, little is due
    bool is_identified = true;

    /// Returns how many bytes may follow that head.
    constexpr std::size_t operator()(head const& front) const noexcept;
};

/// Returns how many bytes may follow the head of a message. Checked before anything is allocated: a kind that
/// such a sender does not send has none. A resume comes before its sender is identified, and has
/// `hello_limit`; `resumed` has no body.
constexpr std::size_t most_body(message_kind type, sender const& by) noexcept {
    if (!by.is_admitted && by.is_rank_0) switch (type) {
        case message_kind::refuse:
        case message_kind::still_waiting_for:
            return words_limit;
        case message_kind::welcome:
            return welcome_bytes(by.ranks);
        default:
            return 0;
        }
    if (!by.is_admitted) return type == message_kind::hello ? hello_limit - head_bytes : 0;
    switch (type) {
    case message_kind::collective_result: {
        constexpr std::size_t of_a_rank = 8 + blob_limit;
        if (!by.is_rank_0) return 0;
        return by.ranks < body_limit / of_a_rank ? by.ranks * of_a_rank : body_limit;
    }
    case message_kind::contribute:
        return by.is_rank_0 ? 0 : blob_limit;
    case message_kind::split:
        return by.is_rank_0 ? 0 : 8;
    case message_kind::fail:
    case message_kind::suspicion:
        return words_limit;
    case message_kind::heartbeat:
        return by.is_rank_0 ? 0 : 4 + (by.ranks + 7) / 8;
    case message_kind::deadline_passed:
        return 8;
    case message_kind::probe_reply:
        return 4;
    case message_kind::blocked:
        return 8 * 3 + blocked_report::longest_call +
               16 * (blocked_report::most_waits + blocked_report::most_channels);
    default:
        return 0;
    }
}

constexpr std::size_t sender::operator()(head const& front) const noexcept {
    return is_identified ? most_body(front.type, *this) : hello_limit - head_bytes;
}

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_CONTROL_WIRE_MESSAGE_KIND_HPP
