// herring: must not compile: tuning that is a number.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

#ifndef HERRING_TWIN
struct own : sound {
    using sound::sound;
    static constexpr int tuning = 65536;
};
#else
struct own : sound {
    using sound::sound;
    static constexpr herring::exchange_tuning tuning{};
};
#endif

using mine = pack<float, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
