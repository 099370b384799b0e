// herring: must not compile: a transport without register_memory.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
#ifndef HERRING_TWIN
    void register_memory(std::span<std::byte>) = delete;
#else
    void register_memory(std::span<std::byte>) {}
#endif
};

using mine = pack<float, own>;

#include "use.hpp"
