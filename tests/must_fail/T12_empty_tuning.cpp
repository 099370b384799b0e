// herring: must not compile: a reducer over a transport whose tuning is empty.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

#include "herring/reducer.hpp"

#ifndef HERRING_TWIN
using own = sound;
#else
struct own : sound {
    using sound::sound;
    static constexpr herring::exchange_tuning tuning{.chunk_bytes = 65536, .window_bytes = 131072};
};
#endif

std::size_t use() { return sizeof(herring::reducer<float, own>); }
