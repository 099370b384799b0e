// herring: one control connection of a world: its messages, and what the failure detector knows of it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_CONNECTION_HPP
#define HERRING_CONTROL_RENDEZVOUS_CONNECTION_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/control/control.hpp"
#include "herring/control/wire/message_kind.hpp"
#include "herring/crypto/seal_provider.hpp"
#include "herring/net/message_link.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace HERRING_NAMESPACE::detail::rendezvous {

using namespace wire;

/// One framed connection. Its owner closes the socket.
///
/// A rank's connection is the one in its place (connection_set.hpp), or a candidate, which is to take that
/// place. A connection that is not identified (`rank` −1) may send little: to rank 0 the request to join and
/// a hello, to a rank the replies. Others may send all that each kind of message may have. Once both ends
/// have proved that they have the secret, each message has a tag behind it, or is sealed.
struct connection : message_link {
    std::uint64_t serial =
        0;                 // number in order of opening: events of a closed connection do not reach the next
    std::size_t entry = 0; // of its set, which uses it again when the connection is closed
    connection* next_free = nullptr; // closed: another one that is
    int rank = -1;                   // −1: not identified
    bool connecting = false;
    bool refused = false; // stays open until the other end has read why
    bool wants_write = false;
    time_point until = time_point::max(); // is closed then
    time_point heard{};                   // time of the last sign of life of its rank, here or by data
    time_point spoke{};                   // time of the last bytes that came in here
    time_point regular{};                 // start of the time in which bytes have come without a pause
    time_point unanswered{};              // time at which the other host last left something unanswered
    std::uint32_t lost = 0;               // packets that were lost
    time_point lossy_at{};                // time of the last lost packet, or packet without an answer
    time_point answered{};                // time of the last packet of the other host
    time_point delivered{}; // time when nothing was left to be acknowledged, or something was acknowledged
    std::uint64_t acknowledged = 0;            // bytes that were acknowledged by then
    std::chrono::microseconds shortest{never}; // round trip of this rank's earlier connections
    std::uint64_t attempt =
        0; // number of its rank's attempt to connect again; 0: the connection by which it has joined
    bool offered = false;   // a candidate: rank 0 may put it in its place
    bool broken = false;    // in its place, and carries nothing any more: another connection has to take it
    bool ended = false;     // broken, because the other end has closed it
    std::uint64_t came = 0; // number of the last numbered message over it
    std::string from{};
    byte_buffer challenge{}; // as sent or received; empty: not yet
    key_exchange exchange{}; // of a rank 0 that seals: from the challenge to the hello

    bool pending() const noexcept { return open() && rank < 0; }
    /// True if it is still the connection of this serial.
    bool still(std::uint64_t number) const noexcept { return open() && serial == number; }

    /// Returns how many bytes may be read next.
    std::size_t room(std::size_t most) const noexcept {
        return rank < 0 && !refused ? std::min(most, hello_limit - in.size()) : most;
    }
};

/// Returns words for bytes of a rank that are no message.
HERRING_SETUP inline std::string words_for(parsed_message const& found) {
    using state = parsed_message::state;
    switch (found.is) {
    case state::too_long:
        return text({"a control message of ", found.front.length, " bytes, more than its kind may have"});
    case state::damaged:
        return "a control message whose checksum is wrong";
    case state::forged:
        return "a control message whose tag is not of the key of this connection: it was forged or changed "
               "on its "
               "way";
    case state::unsealed:
        return "what does not open as the next sealed control message: it was changed, left out, repeated or "
               "forged "
               "on its way";
    default:
        return "bytes that are no control message";
    }
}

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_CONNECTION_HPP
