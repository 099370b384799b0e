// herring: must not compile: a policy whose axis is private, seen at the policy itself.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

class own : public herring::update::sum {
#ifdef HERRING_TWIN
  public:
#endif
    using axis = herring::axes::update;
};
static_assert(herring::checked_policy<own>);
