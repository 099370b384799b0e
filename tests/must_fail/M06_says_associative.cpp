// herring: must not compile: a rule that is not associative; one that says that it is, is taken.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/intra_node/shared_memory.hpp"

struct rule : herring::update::sum {
#ifndef HERRING_TWIN
    static constexpr herring::update_facts facts{.takes_vectors = true, .associative = false};
#else
    static constexpr herring::update_facts facts{.takes_vectors = true};
#endif
};
using mine = pack<float, line, rule, herring::intra_node::shared_memory>;

#include "use.hpp"
