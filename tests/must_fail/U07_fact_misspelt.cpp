// herring: must not compile: a fact that is misspelt: the compiler's own error names it.
// SPDX-License-Identifier: Apache-2.0
// misspelt: asociative
#include "prelude.hpp"

struct own : herring::update::sum {
    static constexpr char const* name = "own";
#ifndef HERRING_TWIN
    static constexpr herring::update_facts facts{.takes_vectors = true, .asociative = false};
#else
    static constexpr herring::update_facts facts{.takes_vectors = true, .associative = false};
#endif
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept { return a - b; }
};

using mine = pack<float, line, own>;

#include "use.hpp"
