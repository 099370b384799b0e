// herring: must not compile: a fact beside facts, where nothing reads it.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own : herring::update::sum {
    static constexpr char const* name = "own";
#ifndef HERRING_TWIN
    static constexpr bool associative = false;
#else
    static constexpr herring::update_facts facts{.takes_vectors = true, .associative = false};
#endif
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept { return a - b; }
};

using mine = pack<float, line, own>;

#include "use.hpp"
