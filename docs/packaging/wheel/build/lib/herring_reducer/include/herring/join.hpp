// herring: `join`: makes this process one rank of a world, as torchrun, mpirun, srun or variables give it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_HPP
#define HERRING_JOIN_HPP

#include "herring/join/join.hpp"

#endif // HERRING_JOIN_HPP
