// herring: must not compile: a transport that cannot be made from a world.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
#ifndef HERRING_TWIN
    own(herring::world& ranks) : sound(ranks, {}) {}
#else
    using sound::sound;
#endif
};

using mine = pack<float, own>;

#include "use.hpp"
