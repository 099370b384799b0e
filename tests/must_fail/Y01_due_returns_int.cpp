// herring: must not compile: due that returns int.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::sync;
#ifndef HERRING_TWIN
    int due(std::uint64_t step) noexcept { return int(step % 2); }
#else
    bool due(std::uint64_t step) noexcept { return step % 2 == 0; }
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
