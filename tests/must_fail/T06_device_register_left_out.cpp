// herring: must not compile: a transport that says it reaches devices, without register_device_memory.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
    static constexpr herring::transport_facts facts{.device_memory = true};
#ifdef HERRING_TWIN
    void register_device_memory(std::span<std::byte>, int) {}
#endif
};

using mine = pack<float, own>;

#include "use.hpp"
