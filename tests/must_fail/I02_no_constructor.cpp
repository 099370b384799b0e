// herring: must not compile: an intra_node policy that cannot be made from a world.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own : herring::intra_node::none {
#ifndef HERRING_TWIN
    own(herring::world& ranks) : none(ranks, 1024) {}
#else
    own(herring::world& ranks, std::size_t bytes) : none(ranks, bytes) {}
#endif
};
using mine = pack<float, line, own>;

#include "use.hpp"
