// herring: a copy of an envelope: the bytes that a message carries beside its payload.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_ENVELOPE_HPP
#define HERRING_TRANSPORT_ENVELOPE_HPP

#include "herring/base/config.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Bytes of the largest envelope.
inline constexpr std::size_t most_envelope_bytes = 32;

/// A copy of an envelope, kept while its message is in flight.
struct kept_envelope {
    std::array<std::byte, most_envelope_bytes> bytes{};
    std::uint32_t size = 0;

    kept_envelope() noexcept = default;
    explicit kept_envelope(std::span<std::byte const> from) noexcept { keep(from); }

    /// Copies an envelope of at most `most_envelope_bytes`.
    HERRING_ALWAYS_INLINE void keep(std::span<std::byte const> from) noexcept {
        size = static_cast<std::uint32_t>(from.size());
        if (size > 0) std::memcpy(bytes.data(), from.data(), size);
    }
    std::span<std::byte const> view() const noexcept { return {bytes.data(), size}; }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_ENVELOPE_HPP
