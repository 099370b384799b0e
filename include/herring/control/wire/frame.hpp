// herring: the frame of a control message: kind, rank, sequence, length and checksums. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_FRAME_HPP
#define HERRING_CONTROL_WIRE_FRAME_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/crc32c.hpp"
#include "herring/control/wire/codec.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail::wire {

inline constexpr std::uint32_t magic = 0x52524548u; // "HERR"
inline constexpr std::uint16_t protocol_version = 5;
inline constexpr std::size_t head_bytes = 32;

enum class message_kind : std::uint16_t {
    hello = 1, // rank → 0: who I am, and a proof that I have the secret
    refuse =
        2, // 0 → rank: you may not join (sequence 1: not now), and why (a failure; to who has proved itself, a proof)
    still_waiting_for = 3, // 0 → rank, while joining: text that names who is missing
    welcome = 4,           // 0 → rank: everyone is here, and the times that hold for all
    barrier = 5,           // rank → 0: I am at barrier `sequence`
    contribute = 6,        // rank → 0: my bytes for all_gather `sequence`
    collective_result = 7, // 0 → rank: collective `sequence` is complete; sizes and bytes of all
    deadline_passed = 8,   // rank → 0: my deadline for `sequence` has passed: name who is missing
    fail = 9,              // either way: a failure
    leave = 10,            // either way: I leave in order
    heartbeat =
        11, // either way: a sign of life; `sequence` numbered messages have been taken; to rank 0: from whom data has
            // come (signs_of_life)
    suspicion = 12,   // rank → 0: I wait for a rank in vain (a failure; sequence 1: it is lost for certain)
    probe = 13,       // 0 → rank: whom do you wait for? (probe `sequence`)
    probe_reply = 14, // rank → 0: for that rank (to probe `sequence`)
    blocked = 15,     // rank → 0: I can do nothing but wait, and where
    knock = 16, // rank → 0: I want to join; the first message. A rank 0 of another version refuses it by name
    challenge = 17, // 0 → rank: salt and nonce, which the hello has to prove itself by
    admit =
        18, // 0 → rank: a proof that I have the secret, and the world's key; from here on messages have tags
    resume = 19, // rank → 0: in place of a hello: this connection is to take the place of the one that I have
    resumed =
        20 // rank → 0: do so; 0 → rank: it has. `sequence` numbered messages have been taken: the next ones follow
};

/// Whether messages of that kind are counted, kept until they are acknowledged, and repeated over the next connection: all that a
/// connection carries from the welcome on, but heartbeats.
constexpr bool is_numbered(message_kind type) noexcept {
    switch (type) {
    case message_kind::barrier:
    case message_kind::contribute:
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

/// The fixed front of every message.
// Layout: magic 0, version 4, type 6, rank 8, length 12, sequence 16, CRC of the body 24, CRC of bytes 0 to 27 28.
// Magic, version and both CRCs keep their places in every later version, so that versions can refuse each other.
struct head {
    std::uint16_t version = protocol_version;
    message_kind type = message_kind::heartbeat;
    std::uint32_t rank = 0;
    std::uint32_t length = 0;
    std::uint64_t sequence = 0;
    std::uint32_t body_crc = 0;

    /// False: not a control message.
    HERRING_SETUP bool read(std::span<std::byte const> from) noexcept {
        if (from.size() < head_bytes) return false;
        reader in{from.first(head_bytes)};
        if (in.number<std::uint32_t>() != magic) return false;
        version = in.number<std::uint16_t>();
        type = static_cast<message_kind>(in.number<std::uint16_t>());
        rank = in.number<std::uint32_t>();
        length = in.number<std::uint32_t>();
        sequence = in.number<std::uint64_t>();
        body_crc = in.number<std::uint32_t>();
        return in.number<std::uint32_t>() == crc32c(from.first(head_bytes - 4));
    }
};

/// Appends the head of a message with this body.
HERRING_SETUP inline void append_head(byte_buffer& to, message_kind type, std::uint32_t rank,
                                      std::uint64_t sequence, std::span<std::byte const> body,
                                      std::uint16_t version = protocol_version) {
    std::size_t const at = to.size();
    append<std::uint32_t>(to, magic);
    append<std::uint16_t>(to, version);
    append<std::uint16_t>(to, static_cast<std::uint16_t>(type));
    append<std::uint32_t>(to, rank);
    append<std::uint32_t>(to, body.size());
    append<std::uint64_t>(to, sequence);
    append<std::uint32_t>(to, crc32c(body));
    append<std::uint32_t>(to, crc32c(std::span<std::byte const>(to).subspan(at, head_bytes - 4)));
}

/// Appends a whole message.
HERRING_SETUP inline void append_message(byte_buffer& to, message_kind type, std::uint32_t rank,
                                         std::uint64_t sequence, std::span<std::byte const> body,
                                         std::uint16_t version = protocol_version) {
    append_head(to, type, rank, sequence, body, version);
    to.append(body);
}

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_CONTROL_WIRE_FRAME_HPP
