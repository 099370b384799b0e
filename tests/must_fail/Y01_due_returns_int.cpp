// herring: must not compile: due that returns int.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
struct own {
    using axis = herring::axes::sync;
    int due(std::uint64_t step) noexcept { return int(step % 2); }
};
#else
struct own {
    using axis = herring::axes::sync;
    bool due(std::uint64_t step) noexcept { return step % 2 == 0; }
};
#endif

using mine = pack<float, line, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
