// herring: must not compile: post_send without noexcept, seen at the policy itself.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
#ifndef HERRING_TWIN
    bool post_send(herring::peer_id, std::uint64_t, std::span<std::byte const>, std::uint64_t);
#else
    bool post_send(herring::peer_id, std::uint64_t, std::span<std::byte const>, std::uint64_t) noexcept;
#endif
};
static_assert(herring::checked_policy<own>);
