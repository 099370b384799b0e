// herring: numbers of an ensemble's connections, requests and rows, and the constants of both ends.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_IDS_HPP
#define HERRING_ENSEMBLE_IDS_HPP

#include "herring/base/config.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::detail::ensembles {

using peer_index =
    std::uint32_t; ///< member × replicas + replica: the connection of one replica of one member
using slot_index = std::uint32_t;  ///< of a request in flight at the frontend
using place_index = std::uint32_t; ///< of a row in a peer's ring of rows

/// Early rows that are kept of each replica. Both ends know the number: lanes have so many more places, where
/// they wait.
inline constexpr std::uint32_t early_places = 4;

/// The argument `oversubscribed` of waiting policies. A process of an ensemble does not know how many others
/// use its machine, so it assumes that the peer it waits for needs this very core. A yield costs less than a
/// microsecond on a free core; a pause on a core that is not free costs the peer its turn, 20 µs with
/// `adaptive`.
inline constexpr bool cores_are_shared = true;

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_IDS_HPP
