// herring: numbers of an ensemble's connections, requests in flight and rows, and the constants that both ends share.
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

/// Of each replica. Both ends know it: lanes have so many places more, in which such rows wait.
inline constexpr std::uint32_t early_places = 4;

/// `oversubscribed` of a policy. No process of an ensemble knows how many others there are on its machine, of this ensemble or
/// not. So each assumes that whom it waits for needs this very core: a yield costs less than a microsecond where the core is
/// free, and a pause where it is not costs the other one its turn, 20 µs of it with `adaptive`.
inline constexpr bool cores_are_shared = true;

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_IDS_HPP
