// herring: the fixed header in front of every message on a byte stream: encode, decode, check. No I/O.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_FRAME_HPP
#define HERRING_TRANSPORT_TCP_FRAME_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/crc32c.hpp"
#include "herring/transport/envelope.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// The header of a frame. The envelope follows the header, and the payload the envelope.
struct frame {
    std::uint64_t job = 0;         ///< of the world; frames of another job are dropped
    std::uint32_t epoch = 0;       ///< of the membership; always 0
    std::uint32_t incarnation = 0; ///< of the sender, as in its hello; other frames are dropped
    std::uint64_t tag = 0;         ///< of the message
    std::uint64_t length = 0;      ///< payload bytes
    std::uint32_t source = 0;      ///< sender's rank
    std::uint32_t envelope = 0;    ///< bytes of the envelope
};

inline constexpr std::size_t frame_bytes = 48;
inline constexpr std::uint32_t frame_magic = 0x31475248; // "HRG1": the protocol's version is part of it

using frame_buffer = std::array<std::byte, frame_bytes>;

/// Writes the header of a frame, `frame_bytes`.
///
/// Layout: magic 0, crc 4 (over bytes 8..47), job 8, epoch 16, incarnation 20, tag 24, length 32, source 40,
///         envelope 44; little-endian.
inline void encode(frame const& f, std::byte* to) noexcept {
    put(to, frame_magic);
    put(to + 8, f.job);
    put(to + 16, f.epoch);
    put(to + 20, f.incarnation);
    put(to + 24, f.tag);
    put(to + 32, f.length);
    put(to + 40, f.source);
    put(to + 44, f.envelope);
    put(to + 4, crc32c(std::span<std::byte const>(to + 8, frame_bytes - 8)));
}

/// Reads the header of a frame. False: wrong magic, checksum or size of the envelope, so this is no frame of
/// Herring. `bytes` has its bounds in its type, so no bound is checked at run time.
inline bool decode(std::span<std::byte const, frame_bytes> bytes, frame& f) noexcept {
    std::byte const* const from = bytes.data();
    f.envelope = get<std::uint32_t>(from + 44);
    if (get<std::uint32_t>(from) != frame_magic || f.envelope > most_envelope_bytes) return false;
    if (get<std::uint32_t>(from + 4) != crc32c(bytes.subspan<8>())) return false;
    f.job = get<std::uint64_t>(from + 8);
    f.epoch = get<std::uint32_t>(from + 16);
    f.incarnation = get<std::uint32_t>(from + 20);
    f.tag = get<std::uint64_t>(from + 24);
    f.length = get<std::uint64_t>(from + 32);
    f.source = get<std::uint32_t>(from + 40);
    return true;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_FRAME_HPP
