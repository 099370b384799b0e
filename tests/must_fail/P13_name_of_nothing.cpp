// herring: must not compile: a policy with an empty name.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own : herring::update::sum {
#ifndef HERRING_TWIN
    static constexpr char const* name = "";
#else
    static constexpr char name[] = "own";
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
