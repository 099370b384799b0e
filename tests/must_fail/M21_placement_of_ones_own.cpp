// herring: must not compile: a placement of one's own with servers, without the header of servers.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/reducer.hpp"
#include "herring/transport/inproc.hpp"
#ifdef HERRING_TWIN
#include "herring/serve.hpp"
#endif

struct elsewhere {
    using axis = herring::axes::placement;
    static constexpr char const* name = "elsewhere";
    static constexpr herring::placement_facts facts{.dedicated_servers = true};
    static herring::roles assign(herring::topology const& map) {
        herring::roles roles;
        for (int n = 0; n < map.nodes(); ++n)
            (map.is_server_node(n) ? roles.servers : roles.contributors).push_back(n);
        return roles;
    }
};

using mine = herring::reducer<float, herring::transport::inproc, elsewhere>;

std::size_t use() { return sizeof(mine); }
