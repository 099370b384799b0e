// herring: must not compile: next without noexcept.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::waiting;
#ifndef HERRING_TWIN
    constexpr herring::wait_action next(std::uint32_t, std::int64_t, bool) const {
        return herring::wait_action::pause;
    }
#else
    constexpr herring::wait_action next(std::uint32_t, std::int64_t, bool) const noexcept {
        return herring::wait_action::pause;
    }
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
