// herring: must not compile: a list with a rule that is not associative, where the ranks of a node are combined first.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/update/any.hpp"

struct in_order : herring::update::sum {
    static constexpr char const* name = "in_order";
    static constexpr herring::update_facts facts{
        .takes_vectors = true, .associative = false, .with_finish = true};
};

#ifndef HERRING_TWIN
using mine = pack<float, line, herring::intra_node::shared_memory,
                  herring::update::any<herring::update::sum, in_order>>;
#else
using mine = pack<float, line, herring::update::any<herring::update::sum, in_order>>;
#endif

#include "use.hpp"
