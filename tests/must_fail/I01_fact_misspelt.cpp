// herring: must not compile: a fact that is misspelt: the compiler's own error names it.
// SPDX-License-Identifier: Apache-2.0
// misspelt: join_ranks
#include "prelude.hpp"

struct own : herring::intra_node::none {
    using none::none;
#ifndef HERRING_TWIN
    static constexpr herring::intra_node_facts facts{.join_ranks = false};
#else
    static constexpr herring::intra_node_facts facts{.joins_ranks = false};
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
