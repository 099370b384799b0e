// herring: must not compile: a placement with dedicated servers, in a program that uses all that a reducer has: one
// error still.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
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

using element = float;
#ifndef HERRING_TWIN
using gradients = herring::reducer<element, herring::transport::inproc, herring::update::sum, elsewhere>;
#else
using gradients = herring::reducer<element, herring::transport::inproc, herring::update::sum>;
#endif

#include "train.hpp"
