// herring: must not compile: a waiting policy that owns memory.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include <string>

#ifndef HERRING_TWIN
struct own {
    using axis = herring::axes::waiting;
    constexpr herring::wait_action next(std::uint32_t, std::int64_t, bool) const noexcept {
        return herring::wait_action::pause;
    }
    std::string label;
};
#else
struct own {
    using axis = herring::axes::waiting;
    constexpr herring::wait_action next(std::uint32_t, std::int64_t, bool) const noexcept {
        return herring::wait_action::pause;
    }
    char label[8] = {};
};
#endif

using mine = pack<float, line, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
