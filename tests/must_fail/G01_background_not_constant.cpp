// herring: must not compile: background that is no constant.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::progress;
#ifndef HERRING_TWIN
    bool background = true;
#else
    static constexpr bool background = true;
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
