// herring: numbers of an ensemble's connections, requests in flight and rows.
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

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_IDS_HPP
