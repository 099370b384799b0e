// herring: numbers of connections, requests and rows, and the constants that both ends share.
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

/// Rows of each replica that may wait because they came early. Both ends know it: lanes have so many more
/// places.
inline constexpr std::uint32_t early_places = 4;

/// `oversubscribed` of a waiting policy. No process of an ensemble knows how many others its machine has. So
/// each assumes that the process it waits for needs this very core: a yield costs less than a microsecond
/// where the core is free, and a pause where it is not costs the other process its turn, 20 µs of it with
/// `adaptive`.
inline constexpr bool cores_are_shared = true;

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_IDS_HPP
