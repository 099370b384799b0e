// herring: must not compile: a sync policy whose due is not const.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::sync;
    static constexpr herring::sync_facts facts{};
    void agreed(herring::sync::ballot const&) noexcept {}
#ifndef HERRING_TWIN
    bool due(std::size_t) noexcept { return true; }
#else
    bool due(std::size_t) const noexcept { return true; }
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
