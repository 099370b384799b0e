// herring: the number by which of two processes of one name the newer is known.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_INCARNATION_HPP
#define HERRING_ENSEMBLE_INCARNATION_HPP

#include "herring/base/config.hpp"
#include "herring/machine/identity.hpp"

#include <cstdint>

#include <time.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A number for this process's life at an ensemble, larger than those that were drawn before, on this machine or another, before a
/// boot or after it: microseconds of the time of day in the upper 52 bits, random below. Not coarser, for a process may join, answer
/// and be replaced within a millisecond.
///
/// Orders processes and nothing else: no deadline depends on it. Where the time of day was set back, a newer process may have
/// a smaller one: it waits until the older has gone (`door_roster`).
HERRING_SETUP inline std::uint64_t new_incarnation() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    auto const us =
        static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
    constexpr unsigned random_width = 12;
    return us << random_width | random_bits() >> (64 - random_width);
}

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_INCARNATION_HPP
