// herring: must not compile: a constructor with an argument.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::sync;
#ifndef HERRING_TWIN
    explicit own(int every) : period(every) {}
    int period;
#else
    int period = 2;
#endif
    bool due(std::uint64_t step) noexcept { return step % 2 == 0; }
};

using mine = pack<float, line, own>;

#include "use.hpp"
