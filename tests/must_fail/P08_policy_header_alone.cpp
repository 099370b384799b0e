// herring: must not compile: a default that nobody has told.
// SPDX-License-Identifier: Apache-2.0
#include "herring/policy.hpp"

#ifndef HERRING_TWIN

#else
#include "herring/detail/defaults.hpp"
#endif

struct line {
    using axis = herring::axes::transport;
};

using mine = herring::resolve_t<float, line>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
