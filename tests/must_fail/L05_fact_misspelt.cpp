// herring: must not compile: a fact that is misspelt: the compiler's own error names it.
// SPDX-License-Identifier: Apache-2.0
// misspelt: dedicated_server
#include "prelude.hpp"

struct own {
    using axis = herring::axes::placement;
#ifndef HERRING_TWIN
    static constexpr herring::placement_facts facts{.dedicated_server = true};
#else
    static constexpr herring::placement_facts facts{.dedicated_servers = true};
#endif
    static herring::roles assign(herring::topology const& map) { return herring::roles::both(map.nodes()); }
};

using mine = pack<float, line, own>;

#include "use.hpp"
