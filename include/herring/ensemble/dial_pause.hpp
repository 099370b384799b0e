// herring: how long a member waits before it dials a frontend again.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DIAL_PAUSE_HPP
#define HERRING_ENSEMBLE_DIAL_PAUSE_HPP

#include "herring/base/config.hpp"
#include "herring/machine/identity.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace HERRING_NAMESPACE::detail::ensembles {

/// How long to wait after the `failures`-th attempt in a row that failed: twice as long each time, times ½ to 1 by a hash, so that
/// members that lost one frontend do not come back all at once.
HERRING_SETUP inline std::chrono::milliseconds pause_after(unsigned failures, std::chrono::milliseconds first,
                                                           std::chrono::milliseconds last,
                                                           std::string_view salt) noexcept {
    std::chrono::milliseconds pause = first;
    for (unsigned i = 1; i < failures && pause < last; ++i) pause *= 2;
    pause = std::min(pause, last);
    std::uint64_t const hash = hash_of(salt.data(), salt.size()) ^ failures * 0x9E3779B97F4A7C15u;
    auto const share = static_cast<long long>((hash * 0xD6E8FEB86659FD93u) >> 54); // 0 to 1023
    return pause / 2 + std::chrono::milliseconds((pause.count() - pause.count() / 2) * share / 1024);
}

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DIAL_PAUSE_HPP
