// herring: must not compile: absent that tells whether, not who.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
struct own : herring::intra_node::none {
    using none::none;
    bool absent(std::uint64_t) noexcept { return false; }
};
using mine = pack<float, line, own>;
#else
struct own : herring::intra_node::none {
    using none::none;
    int absent(std::uint64_t) noexcept { return -1; }
};
using mine = pack<float, line, own>;
#endif

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
