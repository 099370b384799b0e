// herring: must not compile: memory without noexcept.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own : herring::intra_node::none {
    using none::none;
#ifndef HERRING_TWIN
    std::byte* memory() { return none::memory(); }
#else
    std::byte* memory() noexcept { return none::memory(); }
#endif
};
using mine = pack<float, line, own>;

#include "use.hpp"
