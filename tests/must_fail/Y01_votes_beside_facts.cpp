// herring: must not compile: a sync policy whose votes stand beside its facts.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::sync;
#ifndef HERRING_TWIN
    static constexpr bool votes = true;
    static constexpr herring::sync_facts facts{};
#else
    static constexpr herring::sync_facts facts{.votes = true};
#endif
    herring::sync::ballot vote() noexcept { return {}; }
    void agreed(herring::sync::ballot const&) noexcept {}
    bool due(std::size_t) const noexcept { return true; }
};

using mine = pack<float, line, own>;

#include "use.hpp"
