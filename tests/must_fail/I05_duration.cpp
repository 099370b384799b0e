// herring: must not compile: sleep for a duration.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own : herring::intra_node::none {
    using none::none;
#ifndef HERRING_TWIN
    void sleep(std::uint32_t, std::chrono::milliseconds) noexcept {}
#else
    void sleep(std::uint32_t, herring::time_point) noexcept {}
#endif
};
using mine = pack<float, line, own>;

#include "use.hpp"
