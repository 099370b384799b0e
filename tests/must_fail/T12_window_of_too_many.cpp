// herring: must not compile: a reducer over a transport with a window of more chunks than can be counted.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

#include "herring/reducer.hpp"

struct own : sound {
    using sound::sound;
#ifndef HERRING_TWIN
    static constexpr herring::transport_facts facts{.tuning = {.window_bytes = std::size_t{1} << 48 }};
#else
    static constexpr herring::transport_facts facts{.tuning = {.window_bytes = std::size_t{1} << 20}};
#endif
};

std::size_t use() { return sizeof(herring::reducer<float, own>); }
