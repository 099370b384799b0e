// herring: must not compile: background beside facts, where nothing reads it.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::progress;
#ifndef HERRING_TWIN
    static constexpr bool background = true;
#else
    static constexpr herring::progress_facts facts{.background = true};
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
