// herring: must not compile: a rule with a number in it, seen at the policy itself.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::update;
    static constexpr char const* name = "own";
    static constexpr herring::update_facts facts{};
    template <class> static constexpr bool supports = true;
#ifndef HERRING_TWIN
    float beta = 0.9f;
    template <class Acc> Acc combine(Acc a, Acc b) const noexcept { return a + static_cast<Acc>(beta) * b; }
#else
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept { return a + b; }
#endif
    template <class Acc> static Acc finish(Acc total, int) noexcept { return total; }
};
static_assert(herring::checked_policy<own>);
