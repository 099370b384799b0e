// herring: what a waiting policy is told of the cores that a frontend and its members have.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_CORES_HPP
#define HERRING_ENSEMBLE_CORES_HPP

#include "herring/base/config.hpp"

namespace HERRING_NAMESPACE::detail::ensembles {

/// `oversubscribed` of a policy. No process of an ensemble knows how many others there are on its machine, of this ensemble or
/// not. So each assumes that whom it waits for needs this very core: a yield costs less than a microsecond where the core is
/// free, and a pause where it is not costs the other one its turn, 20 µs of it with `adaptive`.
inline constexpr bool cores_are_shared = true;

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_CORES_HPP
