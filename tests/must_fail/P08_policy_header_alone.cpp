// herring: must not compile: a default that nobody has told.
// SPDX-License-Identifier: Apache-2.0
#include "herring/policy.hpp"

#ifdef HERRING_TWIN
#include "herring/session/defaults.hpp"
#endif

struct line {
    using axis = herring::axes::transport;
};

using mine = herring::resolve_t<float, line>;

#include "use.hpp"
