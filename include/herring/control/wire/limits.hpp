// herring: how long a control message of each kind may be. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_LIMITS_HPP
#define HERRING_CONTROL_WIRE_LIMITS_HPP

#include "herring/base/config.hpp"
#include "herring/control/wire/frame.hpp"
#include "herring/control/world_times.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail::wire {

inline constexpr std::size_t hello_limit = 1024; // head and body, before the sender has said who it is
inline constexpr std::size_t blob_limit = std::size_t{64} << 20; // of one rank in one all_gather
inline constexpr std::uint32_t body_limit = 0x7FFFFFFFu;

/// How many bytes may follow the head of a message in a world of `ranks`. Checked before anything is allocated.
constexpr std::size_t most_body(message_kind type, std::size_t ranks) noexcept {
    switch (type) {
    case message_kind::collective_result:
        return body_limit;
    case message_kind::contribute:
        return blob_limit;
    case message_kind::welcome:
        return 8 + 8 * world_times::count + 8 * ranks;
    default:
        return 8192;
    }
}

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_CONTROL_WIRE_LIMITS_HPP
