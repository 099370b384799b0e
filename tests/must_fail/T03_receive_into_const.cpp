// herring: must not compile: post_receive into bytes that cannot be written.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
#ifndef HERRING_TWIN
    bool post_receive(herring::peer_id, std::uint64_t, std::vector<std::byte>&, std::uint64_t) noexcept;
#else
    bool post_receive(herring::peer_id, std::uint64_t, std::span<std::byte>, std::uint64_t) noexcept;
#endif
};

using mine = pack<float, own>;

#include "use.hpp"
