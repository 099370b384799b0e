// herring: must not compile: a waiting policy that owns memory.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include <string>

struct own {
    using axis = herring::axes::waiting;
    constexpr herring::wait_action next(std::uint32_t, std::int64_t, bool) const noexcept {
        return herring::wait_action::pause;
    }
#ifndef HERRING_TWIN
    std::string label;
#else
    char label[8] = {};
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
