// herring: must not compile: background that is no constant.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
struct own {
    using axis = herring::axes::progress;
    bool background = true;
};
#else
struct own {
    using axis = herring::axes::progress;
    static constexpr bool background = true;
};
#endif

using mine = pack<float, line, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
