// herring: the failure of a rank that has left in order while other ranks still wait for it. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_FAILURE_DEPARTURE_HPP
#define HERRING_CONTROL_FAILURE_DEPARTURE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"

#include <string_view>

namespace HERRING_NAMESPACE::detail {

/// `rank` has left, and `reporter` waits for it in `operation`. `how`: for the text.
HERRING_SETUP inline failure departure(int reporter, int rank, std::string_view operation,
                                       std::string_view how) noexcept {
    return failure::make(
        errc::peer_lost, reporter, rank, operation,
        {"it left (", how, ") while others still wait for it; let every rank make the same calls"});
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_FAILURE_DEPARTURE_HPP
