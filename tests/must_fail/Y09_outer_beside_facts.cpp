// herring: must not compile: a sync policy that names an outer optimizer, and whose facts do not say so.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct nudge; // an optimizer

struct own {
    using axis = herring::axes::sync;
    using outer = nudge;
#ifndef HERRING_TWIN
    static constexpr herring::sync_facts facts{};
#else
    static constexpr herring::sync_facts facts{.outer = true};
#endif
    void agreed(herring::sync::ballot const&) noexcept {}
    bool due(std::size_t) const noexcept { return true; }
};

using mine = pack<float, line, own>;

#include "use.hpp"
