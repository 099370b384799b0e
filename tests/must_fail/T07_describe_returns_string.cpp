// herring: must not compile: describe that returns a string.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
#ifndef HERRING_TWIN
    std::string describe(herring::peer_id) const;
#else
    char const* describe(herring::peer_id) const;
#endif
};

using mine = pack<float, own>;

#include "use.hpp"
