// herring: `launch` and `launch_threads`: start the ranks of a world on this machine.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_LAUNCH_HPP
#define HERRING_LAUNCH_HPP

#include "herring/join/launch.hpp"

#endif // HERRING_LAUNCH_HPP
