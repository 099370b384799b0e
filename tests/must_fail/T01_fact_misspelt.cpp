// herring: must not compile: a misspelt fact.
// SPDX-License-Identifier: Apache-2.0
//
// compiler: no non-static data member named .keps_order|designator .keps_order. does not refer to any field
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
#ifndef HERRING_TWIN
    static constexpr herring::transport_facts facts{.keps_order = true};
#else
    static constexpr herring::transport_facts facts{.keeps_order = true};
#endif
};

using mine = pack<float, own>;

#include "use.hpp"
