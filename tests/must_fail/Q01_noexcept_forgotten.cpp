// herring: must not compile: least without noexcept.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/quorum.hpp"

struct own {
    using axis = herring::axes::quorum;
    static constexpr herring::quorum_tuning tuning{};
#ifndef HERRING_TWIN
    static constexpr std::size_t least(std::size_t roster) { return roster / 2 + 1; }
#else
    static constexpr std::size_t least(std::size_t roster) noexcept { return roster / 2 + 1; }
#endif
};

inline constexpr bool mine = herring::check<herring::axes::quorum, own>::value;
