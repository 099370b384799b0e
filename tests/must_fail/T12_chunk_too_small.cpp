// herring: must not compile: a reducer over a transport with chunks below 4 KiB.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

#include "herring/reducer.hpp"

struct own : sound {
    using sound::sound;
#ifndef HERRING_TWIN
    static constexpr herring::transport_facts facts{.tuning = {.chunk_bytes = 1024 }};
#else
    static constexpr herring::transport_facts facts{};
#endif
};

std::size_t use() { return sizeof(herring::reducer<float, own>); }
