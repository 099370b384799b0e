// herring: must not compile: combine without noexcept.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::update;
    static constexpr char const* name = "own";
    template <class T> static constexpr bool supports = true;
    static constexpr herring::update_facts facts{.takes_vectors = true};
#ifndef HERRING_TWIN
    template <class Acc> static Acc combine(Acc a, Acc b) { return a + b; }
#else
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept { return a + b; }
#endif
    template <class Acc> static Acc finish(Acc total, int) noexcept { return total; }
};

using mine = pack<float, line, own>;

#include "use.hpp"
