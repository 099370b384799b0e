// herring: must not compile: an element type that a rule of one's own does not support.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct floats_only : herring::update::sum {
    template <class T> static constexpr bool supports = std::is_same_v<T, float>;
};

#ifndef HERRING_TWIN
using mine = pack<double, line, floats_only>;
#else
using mine = pack<float, line, floats_only>;
#endif

#include "use.hpp"
