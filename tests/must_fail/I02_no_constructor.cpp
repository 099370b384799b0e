// herring: must not compile: an intra_node policy that cannot be made from a world.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
struct own : herring::intra_node::none {
    own(herring::world& ranks) : none(ranks, 1024) {}
};
using mine = pack<float, line, own>;
#else
struct own : herring::intra_node::none {
    own(herring::world& ranks, std::size_t bytes) : none(ranks, bytes) {}
};
using mine = pack<float, line, own>;
#endif

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
