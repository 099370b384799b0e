// herring: must not compile: a policy that needs order over a transport that does not keep it.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct streams : herring::sharding::balanced {
    using needs = herring::needs<herring::need::ordered>;
};
struct queue : line {
    static constexpr line_facts facts{.keeps_order = true};
};

#ifndef HERRING_TWIN
using mine = pack<float, line, streams>;
#else
using mine = pack<float, queue, streams>;
#endif

#include "use.hpp"
