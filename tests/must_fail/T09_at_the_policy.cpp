// herring: must not compile: a transport that takes a const world, seen at the policy itself.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
#ifndef HERRING_TWIN
    own(herring::world const&, herring::transport_needs const&, int);
#else
    own(herring::world&, herring::transport_needs const&);
#endif
};
static_assert(herring::checked_policy<own>);
