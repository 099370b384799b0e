// herring: the envelope of transport::sealed: a message's number and its tag of AES-GCM; and what that covers beside the payload.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_SEALED_ENVELOPE_HPP
#define HERRING_TRANSPORT_SEALED_ENVELOPE_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail {

/// Layout: counter 0, tag of AES-GCM 8.
struct sealed_envelope {
    static constexpr std::size_t bytes = 24;
    using buffer = std::array<std::byte, bytes>;

    static std::uint64_t counter_of(std::byte const* from) noexcept { return get<std::uint64_t>(from); }
    static std::byte const* tag_of(std::byte const* from) noexcept { return from + 8; }
    static std::byte* tag_of(std::byte* from) noexcept { return from + 8; }
};

/// What a message is beside its payload, as bytes that its seal covers.
///
/// Layout: message's tag 0, counter 8, length 16, sender 24, receiver 28, epoch 32.
struct sealed_beside {
    using buffer = std::array<std::byte, 36>;

    static buffer of(std::uint64_t tag, std::uint64_t counter, std::uint64_t length, int sender, int receiver,
                     std::uint32_t epoch) noexcept {
        buffer made;
        put(made.data(), tag);
        put(made.data() + 8, counter);
        put(made.data() + 16, length);
        put(made.data() + 24, static_cast<std::uint32_t>(sender));
        put(made.data() + 28, static_cast<std::uint32_t>(receiver));
        put(made.data() + 32, epoch);
        return made;
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_SEALED_ENVELOPE_HPP
