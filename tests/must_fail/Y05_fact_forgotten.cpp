// herring: must not compile: a sync policy that would observe, and whose facts do not say so.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::sync;
#ifndef HERRING_TWIN
    static constexpr herring::sync_facts facts{};
#else
    static constexpr herring::sync_facts facts{.observes = true};
#endif
    void observe(std::size_t, double) noexcept {}
    void agreed(herring::sync::ballot const&) noexcept {}
    bool due(std::size_t) const noexcept { return true; }
};

using mine = pack<float, line, own>;

#include "use.hpp"
