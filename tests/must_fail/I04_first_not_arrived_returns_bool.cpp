// herring: must not compile: absent that tells whether, not who.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own : herring::intra_node::none {
    using none::none;
#ifndef HERRING_TWIN
    bool first_not_arrived(std::uint64_t) noexcept { return false; }
#else
    int first_not_arrived(std::uint64_t) noexcept { return -1; }
#endif
};
using mine = pack<float, line, own>;

#include "use.hpp"
