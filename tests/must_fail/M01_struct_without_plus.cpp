// herring: must not compile: a sum of structs that cannot be added.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/update/rules.hpp"

struct cell {
    double x, y;
#ifdef HERRING_TWIN
    friend cell operator+(cell a, cell b) noexcept { return {a.x + b.x, a.y + b.y}; }
#endif
};
template <> inline constexpr bool herring::is_element<cell> = true;

using mine = pack<cell, line, herring::update::sum>;

#include "use.hpp"
