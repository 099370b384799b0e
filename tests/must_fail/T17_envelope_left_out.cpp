// herring: must not compile: a transport that promises envelopes and has no post_send with one.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
    static constexpr herring::transport_facts facts{.envelope_bytes = 16};
#ifdef HERRING_TWIN
    using sound::post_send;
    bool post_send(herring::peer_id, std::uint64_t, std::span<std::byte const> envelope,
                   std::span<std::byte const>, std::uint64_t) noexcept;
#endif
};

using mine = pack<float, own>;

#include "use.hpp"
