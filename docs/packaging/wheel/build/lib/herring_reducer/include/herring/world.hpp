// herring: `world`: the ranks that work together, as one of them sees them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WORLD_HPP
#define HERRING_WORLD_HPP

#include "herring/control/world.hpp"

#endif // HERRING_WORLD_HPP
