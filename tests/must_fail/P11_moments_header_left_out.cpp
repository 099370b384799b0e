// herring: must not compile: the header of all_moments is forgotten, in a program that uses all that a reducer has.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"
#ifdef HERRING_TWIN
#include "herring/collectives/all_moments.hpp"
#endif

using element = float;
using gradients = herring::reducer<element, herring::transport::inproc, herring::update::moments>;

#include "train.hpp"
