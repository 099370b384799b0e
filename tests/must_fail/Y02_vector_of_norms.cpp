// herring: must not compile: a sync policy that keeps a vector.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include <vector>

struct own {
    using axis = herring::axes::sync;
    static constexpr herring::sync_facts facts{.observes = true};
    void observe(std::size_t bucket, double squares) noexcept {
        norms[bucket % herring::sync::ballot::bits] = squares;
    }
    void agreed(herring::sync::ballot const&) noexcept {}
    bool due(std::size_t) const noexcept { return true; }
#ifndef HERRING_TWIN
    std::vector<double> norms;
#else
    double norms[herring::sync::ballot::bits] = {};
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
