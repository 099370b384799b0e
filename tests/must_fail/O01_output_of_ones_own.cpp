// herring: must not compile: an outputs policy that is no list.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/outputs.hpp"

#ifndef HERRING_TWIN
struct own {
    using axis = herring::axes::outputs;
    static constexpr char const* name = "own";
};
#else
using own = herring::outputs::of<herring::outputs::variance>;
#endif

inline constexpr bool mine = herring::check<herring::axes::outputs, own>::value;
