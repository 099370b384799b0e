// herring: must not compile: describe that returns a string.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

#ifndef HERRING_TWIN
struct own : sound {
    using sound::sound;
    std::string describe(int) const;
};
#else
struct own : sound {
    using sound::sound;
    char const* describe(int) const;
};
#endif

using mine = pack<float, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
