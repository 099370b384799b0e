// herring: must not compile: a reducer with a placement that it does not run.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/reducer.hpp"
#include "herring/transport/inproc.hpp"

struct elsewhere {
    using axis = herring::axes::placement;
    static constexpr herring::placement_facts facts{.dedicated_servers = true};
    static herring::roles assign(herring::topology const& map) {
        herring::roles roles;
        for (int n = 0; n < map.nodes(); ++n) (n == 0 ? roles.servers : roles.contributors).push_back(n);
        return roles;
    }
};

#ifndef HERRING_TWIN
using mine = herring::reducer<float, herring::transport::inproc, elsewhere>;
#else
using mine = herring::reducer<float, herring::transport::inproc>;
#endif

std::size_t use() { return sizeof(mine); }
