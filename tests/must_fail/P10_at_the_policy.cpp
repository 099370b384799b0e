// herring: must not compile: a policy with a virtual destructor, seen at the policy itself.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own : herring::update::sum {
#ifndef HERRING_TWIN
    virtual ~own() = default;
#else
    ~own() = default;
#endif
};
static_assert(herring::checked_policy<own>);
