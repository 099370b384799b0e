// herring: must not compile: tuning that is a number.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
#ifndef HERRING_TWIN
    static constexpr int tuning = 65536;
#else
    static constexpr herring::exchange_tuning tuning{};
#endif
};

using mine = pack<float, own>;

#include "use.hpp"
