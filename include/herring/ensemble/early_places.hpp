// herring: how many rows of a member a frontend keeps that come before it expects them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_EARLY_PLACES_HPP
#define HERRING_ENSEMBLE_EARLY_PLACES_HPP

#include "herring/base/config.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Of each replica. Both ends know it: lanes have so many places more, in which such rows wait.
inline constexpr std::uint32_t early_places = 4;

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_EARLY_PLACES_HPP
