// herring: must not compile: an update rule without finish.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
struct own {
    using axis = herring::axes::update;
    static constexpr char const* name = "own";
    template <class T> static constexpr bool supports = true;
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept { return a + b; }
};
#else
struct own {
    using axis = herring::axes::update;
    static constexpr char const* name = "own";
    template <class T> static constexpr bool supports = true;
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept { return a + b; }
    template <class Acc> static Acc finish(Acc total, int) noexcept { return total; }
};
#endif

using mine = pack<float, line, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
