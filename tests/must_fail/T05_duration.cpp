// herring: must not compile: wait for a duration.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

#ifndef HERRING_TWIN
struct own : sound {
    using sound::sound;
    void wait(std::chrono::milliseconds) noexcept;
};
#else
struct own : sound {
    using sound::sound;
    void wait(herring::time_point) noexcept;
};
#endif

using mine = pack<float, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
