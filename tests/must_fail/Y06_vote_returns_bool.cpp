// herring: must not compile: a sync policy that votes with one bool.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::sync;
    static constexpr herring::sync_facts facts{.votes = true};
#ifndef HERRING_TWIN
    bool vote() noexcept { return true; }
#else
    herring::sync::ballot vote() noexcept { return herring::sync::ballot::all(); }
#endif
    void agreed(herring::sync::ballot const&) noexcept {}
    bool due(std::size_t) const noexcept { return true; }
};

using mine = pack<float, line, own>;

#include "use.hpp"
