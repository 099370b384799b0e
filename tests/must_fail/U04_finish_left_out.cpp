// herring: must not compile: an update rule without finish.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::update;
    static constexpr char const* name = "own";
    template <class T> static constexpr bool supports = true;
    static constexpr herring::update_facts facts{.takes_vectors = true};
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept { return a + b; }
#ifdef HERRING_TWIN
    template <class Acc> static Acc finish(Acc total, int) noexcept { return total; }
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
