// herring: must not compile: facts that are no constant.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::placement;
#ifndef HERRING_TWIN
    static inline herring::placement_facts facts{};
#else
    static constexpr herring::placement_facts facts{};
#endif
    static herring::roles assign(herring::topology const& map) { return herring::roles::both(map.nodes()); }
};

using mine = pack<float, line, own>;

#include "use.hpp"
