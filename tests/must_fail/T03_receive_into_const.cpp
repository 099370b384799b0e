// herring: must not compile: post_receive into bytes that cannot be written.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

#ifndef HERRING_TWIN
struct own : sound {
    using sound::sound;
    bool post_receive(int, std::uint64_t, std::vector<std::byte>&, std::uint64_t) noexcept;
};
#else
struct own : sound {
    using sound::sound;
    bool post_receive(int, std::uint64_t, std::span<std::byte>, std::uint64_t) noexcept;
};
#endif

using mine = pack<float, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
