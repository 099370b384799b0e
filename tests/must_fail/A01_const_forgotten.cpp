// herring: must not compile: next that is not const.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
struct own {
    using axis = herring::axes::waiting;
    constexpr herring::wait_action next(std::uint32_t, std::int64_t, bool) noexcept {
        return herring::wait_action::pause;
    }
};
#else
struct own {
    using axis = herring::axes::waiting;
    constexpr herring::wait_action next(std::uint32_t, std::int64_t, bool) const noexcept {
        return herring::wait_action::pause;
    }
};
#endif

using mine = pack<float, line, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
