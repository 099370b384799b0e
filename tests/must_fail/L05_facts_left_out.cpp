// herring: must not compile: a placement that states no facts.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::placement;
#ifdef HERRING_TWIN
    static constexpr herring::placement_facts facts{};
#endif
    static herring::roles assign(herring::topology const& map) { return herring::roles::both(map.nodes()); }
};

using mine = pack<float, line, own>;

#include "use.hpp"
