// herring: must not compile: post_send without noexcept.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

#ifndef HERRING_TWIN
struct own : sound {
    using sound::sound;
    bool post_send(int, std::uint64_t, std::span<std::byte const>, std::uint64_t);
};
#else
struct own : sound {
    using sound::sound;
    bool post_send(int, std::uint64_t, std::span<std::byte const>, std::uint64_t) noexcept;
};
#endif

using mine = pack<float, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
