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
/// A rank's connection is the one in its place (connection_set.hpp), or a candidate, which is to take that place.
/// A connection that is not identified (`rank` −1) may send little: at rank 0 a knock and a hello, at a rank the replies.
/// Others may send what each kind of message may have. Once both ends have proved that they have the secret, each message
/// has a tag behind it, or is sealed.
struct connection : message_link {
    std::uint64_t serial = 0; // in order of opening: events of a closed connection do not reach the next
    int rank = -1;            // −1: not identified
    bool connecting = false;
    bool refused = false; // stays open until the other end has read why
    bool wants_write = false;
    time_point until = time_point::max();      // is closed then
    time_point heard{};                        // when its rank last gave a sign of life, here or by data
    time_point spoke{};                        // when something last came in here
    time_point regular{};                      // since when it has come without a pause
    time_point unanswered{};                   // when the other host last left something unanswered
    std::uint32_t lost = 0;                    // packets
    time_point lossy_at{};                     // when one was last seen, or one without an answer
    time_point answered{};                     // when the last packet came from the other host
    time_point delivered{};                    // when nothing was left to be acknowledged, or something was
    std::uint64_t acknowledged = 0;            // bytes, then
    std::chrono::microseconds shortest{never}; // round trip of this rank's connections before this one
    std::uint64_t attempt = 0; // of its rank to make a new connection; 0: that by which it has joined
    bool offered = false;      // a candidate: rank 0 may put it in its place
    bool broken = false;       // in its place, and carries nothing any more: another one has to take it
    bool ended = false;        // because the other end has closed it
    std::uint64_t came = 0;    // number of the last numbered message that came over it
    std::string from{};
    byte_buffer challenge{}; // that was sent or received; empty: not yet
    key_exchange exchange{}; // rank 0, where it seals: from the challenge to the hello

    bool pending() const noexcept { return open() && rank < 0; }
    /// Still the connection that had this serial.
    bool still(std::uint64_t number) const noexcept { return open() && serial == number; }

    /// How many bytes may be read next.
    std::size_t room(std::size_t most) const noexcept {
        return rank < 0 && !refused ? std::min(most, hello_limit - in.size()) : most;
    }

    /// The message at byte `begin` of the bytes that have come in. `by`: the sender, where it is identified.
    HERRING_SETUP parsed_message parse(std::size_t begin, sender const& by) {
        return message_link::parse(begin, [&](head const& h) noexcept {
            return rank < 0 ? hello_limit - head_bytes : most_body(h.type, by);
        });
    }
};

/// Words for what a rank has sent in place of a message.
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
