// herring: the envelope of transport::checked: a message's number and the CRC-32C of all that it is.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_CHECKED_ENVELOPE_HPP
#define HERRING_TRANSPORT_CHECKED_ENVELOPE_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/crc32c.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// What a message is beside its payload.
struct checked_message {
    std::uint64_t tag = 0;     ///< with its carried bits
    std::uint64_t counter = 0; ///< of the messages from this sender to this receiver, from 0 on
    int sender = -1;           ///< rank
    int receiver = -1;         ///< rank
};

struct checked_envelope {
    static constexpr std::size_t bytes = 12;
    using buffer = std::array<std::byte, bytes>;

    // Layout: counter 0, crc 8.
    static buffer of(checked_message const& what, std::span<std::byte const> payload) noexcept {
        buffer made;
        put(made.data(), what.counter);
        put(made.data() + 8, crc_of(what, payload));
        return made;
    }

    explicit checked_envelope(std::span<std::byte const> from) noexcept : whole_(from.size() == bytes) {
        if (!whole_) return;
        counter = get<std::uint64_t>(from.data());
        crc_ = get<std::uint32_t>(from.data() + 8);
    }
    /// Whether the message is the one that this envelope was made for.
    bool is_of(checked_message const& what, std::span<std::byte const> payload) const noexcept {
        return whole_ && crc_of(what, payload) == crc_;
    }

    std::uint64_t counter = 0;

  private:
    static std::uint32_t crc_of(checked_message const& what, std::span<std::byte const> payload) noexcept {
        std::array<std::byte, 32> rest;
        put(rest.data(), what.tag);
        put(rest.data() + 8, what.counter);
        put(rest.data() + 16, std::uint64_t{payload.size()});
        put(rest.data() + 24, static_cast<std::uint32_t>(what.sender));
        put(rest.data() + 28, static_cast<std::uint32_t>(what.receiver));
        return crc32c(rest, crc32c(payload));
    }

    std::uint32_t crc_ = 0;
    bool whole_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_CHECKED_ENVELOPE_HPP
