// herring: must not compile: wait for a duration.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
#ifndef HERRING_TWIN
    void wait(std::chrono::milliseconds) noexcept;
#else
    void wait(herring::time_point) noexcept;
#endif
};

using mine = pack<float, own>;

#include "use.hpp"
