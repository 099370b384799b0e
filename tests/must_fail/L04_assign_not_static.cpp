// herring: must not compile: assign that is not static.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::placement;
    static constexpr herring::placement_facts facts{};
#ifndef HERRING_TWIN
    herring::roles assign(herring::topology const& map) { return herring::roles::both(map.nodes()); }
#else
    static herring::roles assign(herring::topology const& map) { return herring::roles::both(map.nodes()); }
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
