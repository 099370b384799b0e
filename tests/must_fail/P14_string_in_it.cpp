// herring: must not compile: an element type of one's own that owns memory.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include <string>

struct cell {
    double pressure;
#ifndef HERRING_TWIN
    std::string name;
#else
    int number;
#endif
};
template <> inline constexpr bool herring::is_element<cell> = true;

struct first {
    using axis = herring::axes::update;
    static constexpr char const* name = "first";
    template <class Element> static constexpr bool supports = true;
    static constexpr herring::update_facts facts{};
    template <class Acc> static Acc combine(Acc a, Acc) noexcept { return a; }
    template <class Acc> static Acc finish(Acc total, int) noexcept { return total; }
};
using mine = pack<cell, line, first>;

#include "use.hpp"
