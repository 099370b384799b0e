// herring: must not compile: sleep for a duration.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
struct own : herring::intra_node::none {
    using none::none;
    void sleep(std::uint32_t, std::chrono::milliseconds) noexcept {}
};
using mine = pack<float, line, own>;
#else
struct own : herring::intra_node::none {
    using none::none;
    void sleep(std::uint32_t, herring::time_point) noexcept {}
};
using mine = pack<float, line, own>;
#endif

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
