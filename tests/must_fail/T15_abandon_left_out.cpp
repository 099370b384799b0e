// herring: must not compile: a transport that promises abandon() and has none.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
    static constexpr herring::transport_facts facts{.abandons = true};
#ifdef HERRING_TWIN
    void abandon() noexcept {}
#endif
};

using mine = pack<float, own>;

#include "use.hpp"
