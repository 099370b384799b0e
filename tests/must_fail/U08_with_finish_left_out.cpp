// herring: must not compile: facts that announce with_finish, in a rule that has none.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::update;
    static constexpr char const* name = "own";
    template <class T> static constexpr bool supports = true;
#ifndef HERRING_TWIN
    static constexpr herring::update_facts facts{.takes_vectors = true, .with_finish = true};
#else
    static constexpr herring::update_facts facts{.takes_vectors = true};
#endif
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept { return a + b; }
    template <class Acc> static Acc finish(Acc total, int) noexcept { return total; }
};

using mine = pack<float, line, own>;

#include "use.hpp"
