// herring: must not compile: a fact beside facts, where nothing reads it.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own : herring::intra_node::none {
    using none::none;
#ifndef HERRING_TWIN
    static constexpr bool joins_ranks = true;
#else
    static constexpr herring::intra_node_facts facts{.joins_ranks = true};
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
