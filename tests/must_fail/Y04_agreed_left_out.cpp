// herring: must not compile: a sync policy that does not take the end of a step.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::sync;
    static constexpr herring::sync_facts facts{};
#ifdef HERRING_TWIN
    void agreed(herring::sync::ballot const&) noexcept {}
#endif
    bool due(std::size_t) const noexcept { return true; }
};

using mine = pack<float, line, own>;

#include "use.hpp"
