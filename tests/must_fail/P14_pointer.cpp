// herring: must not compile: pointers, which mean nothing to other ranks.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/update/rules.hpp"

#ifndef HERRING_TWIN
using cell = double*;
#else
struct cell {
    double x;
    friend bool operator<(cell a, cell b) noexcept { return a.x < b.x; }
    friend bool operator>(cell a, cell b) noexcept { return a.x > b.x; }
};
#endif
template <> inline constexpr bool herring::is_element<cell> = true;

using mine = pack<cell, line, herring::update::max>;

#include "use.hpp"
