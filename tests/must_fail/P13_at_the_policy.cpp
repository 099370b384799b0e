// herring: must not compile: a policy whose name is nullptr, seen at the policy itself.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own : herring::update::sum {
#ifndef HERRING_TWIN
    static constexpr char const* name = nullptr;
#else
    static constexpr char const* name = "own";
#endif
};
static_assert(herring::checked_policy<own>);
