// herring: must not compile: a quorum without a tuning.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/quorum.hpp"

struct own {
    using axis = herring::axes::quorum;
#ifdef HERRING_TWIN
    static constexpr herring::quorum_tuning tuning{};
#endif
    static constexpr std::size_t least(std::size_t) noexcept { return 2; }
};

inline constexpr bool mine = herring::check<herring::axes::quorum, own>::value;
