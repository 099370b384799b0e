// herring: must not compile: a fact that is a member of the transport, where nobody reads it.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
#ifndef HERRING_TWIN
    static constexpr bool keeps_order = true;
#else
    static constexpr herring::transport_facts facts{.keeps_order = true};
#endif
};

using mine = pack<float, own>;

#include "use.hpp"
