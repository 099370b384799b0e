// herring: joining a world as one of its ranks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_HPP
#define HERRING_JOIN_HPP

#include "herring/join/join.hpp"

#endif // HERRING_JOIN_HPP
