// herring: must not compile: an intra_node policy that hides one of the facts.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
struct own : herring::intra_node::none {
    using none::none;

  private:
    using none::tuning;
};
using mine = pack<float, line, own>;
#else
struct own : herring::intra_node::none {
    using none::none;
    using none::tuning;
};
using mine = pack<float, line, own>;
#endif

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
