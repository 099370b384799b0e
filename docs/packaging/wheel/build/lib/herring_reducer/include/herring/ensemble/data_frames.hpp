// herring: messages on the data connection of a frontend and a member: their heads. No I/O.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DATA_FRAMES_HPP
#define HERRING_ENSEMBLE_DATA_FRAMES_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/ensemble/outcome.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Kind of message: the payload behind its head.
enum class data_kind : std::uint8_t {
    ask = 1, ///< frontend to member: a request's bytes
    row,     ///< member to frontend: an encoded row
    declined ///< member to frontend: no payload, there will be no row
};

struct data_head {
    data_kind kind = data_kind::ask;
    decline reason = decline::unspecified; ///< `declined` only
    std::uint64_t id = 0;                  ///< of the request
    std::uint64_t remaining_us = 0;        ///< `ask` only: until the deadline, when it was handed to the lane
    std::uint32_t length = 0;              ///< of the payload; 0 for `declined`
};

inline constexpr std::size_t data_head_bytes = 32;
inline constexpr std::uint32_t data_magic = 0x31455248; // "HRE1": the protocol's version is part of it

// Layout, little-endian: magic 0, kind 4, reason 5, zero 6, id 8, remaining_us 16, bytes 24, zero 28.
inline void encode(data_head const& h, std::byte* to) noexcept {
    put(to, data_magic);
    to[4] = static_cast<std::byte>(h.kind);
    to[5] = static_cast<std::byte>(h.reason);
    put(to + 6, std::uint16_t{0});
    put(to + 8, h.id);
    put(to + 16, h.remaining_us);
    put(to + 24, h.length);
    put(to + 28, std::uint32_t{0});
}

/// False if the bytes are no head: another magic, kind or reason, or a value other than 0 in an unused field.
inline bool decode(std::span<std::byte const, data_head_bytes> bytes, data_head& h) noexcept {
    std::byte const* const from = bytes.data();
    auto const kind = std::to_integer<std::uint8_t>(from[4]), reason = std::to_integer<std::uint8_t>(from[5]);
    if (get<std::uint32_t>(from) != data_magic || kind < 1 || kind > 3 || reason >= declines) return false;
    if (get<std::uint16_t>(from + 6) != 0 || get<std::uint32_t>(from + 28) != 0) return false;
    h.kind = static_cast<data_kind>(kind);
    h.reason = static_cast<decline>(reason);
    h.id = get<std::uint64_t>(from + 8);
    h.remaining_us = get<std::uint64_t>(from + 16);
    h.length = get<std::uint32_t>(from + 24);
    if (h.kind != data_kind::ask && h.remaining_us != 0) return false;
    return h.kind == data_kind::declined ? h.length == 0 : h.reason == decline::unspecified;
}

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DATA_FRAMES_HPP
