// herring: must not compile: memory without noexcept.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
struct own : herring::intra_node::none {
    using none::none;
    std::byte* memory() { return none::memory(); }
};
using mine = pack<float, line, own>;
#else
struct own : herring::intra_node::none {
    using none::none;
    std::byte* memory() noexcept { return none::memory(); }
};
using mine = pack<float, line, own>;
#endif

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
