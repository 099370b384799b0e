// herring: must not compile: a transport without register_memory.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

#ifndef HERRING_TWIN
struct own : sound {
    using sound::sound;
    void register_memory(std::span<std::byte>) = delete;
};
#else
struct own : sound {
    using sound::sound;
    void register_memory(std::span<std::byte>) {}
};
#endif

using mine = pack<float, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
