// herring: must not compile: a lift of numbers, by a rule that says it takes vectors.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct squares : herring::update::average {
    static constexpr char const* name = "squares";
#ifndef HERRING_TWIN
    static constexpr herring::update_facts facts{.takes_vectors = true, .lifts = true};
#else
    static constexpr herring::update_facts facts{.lifts = true};
#endif
    static float lift(float x) noexcept { return x * x; }
};

using mine = pack<float, line, squares>;

#include "use.hpp"
