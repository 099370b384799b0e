// herring: must not compile: an abandon() that nobody would call.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
    void abandon() noexcept {}
#ifdef HERRING_TWIN
    static constexpr herring::transport_facts facts{.abandons = true};
#endif
};

using mine = pack<float, own>;

#include "use.hpp"
