// herring: how long a control message of each kind may be. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_LIMITS_HPP
#define HERRING_CONTROL_WIRE_LIMITS_HPP

#include "herring/base/config.hpp"
#include "herring/control/failure/deadlock.hpp"
#include "herring/control/wire/frame.hpp"
#include "herring/control/world_times.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail::wire {

inline constexpr std::size_t hello_limit = 1024; // head and body, before the sender has said who it is
inline constexpr std::size_t blob_limit = std::size_t{64} << 20; // of one rank in one all_gather
inline constexpr std::uint32_t body_limit = 0x7FFFFFFFu;
inline constexpr std::size_t words_limit = 8192; // of a message that carries texts

/// The body of a welcome to a world of `ranks`: job, times, node, machine, rate and role of each rank.
constexpr std::size_t welcome_bytes(std::size_t ranks) noexcept {
    return 8 + 8 * world_times::count + 13 * ranks;
}

/// Whose message it is, and when it came.
struct sender {
    std::size_t ranks = 0;  ///< of the world
    bool is_rank_0 = false; ///< or another rank, which writes to rank 0
    bool is_admitted =
        false; ///< the receiver has sent the welcome, or read it; before, and over a candidate, little is due
};

/// How many bytes may follow the head of a message. Checked before anything is allocated: a kind that such a sender does not
/// send has none. A resume comes before its sender is known, and has `hello_limit`; `resumed` has no body.
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

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_CONTROL_WIRE_LIMITS_HPP
