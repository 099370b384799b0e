// herring: must not compile: the header of the intra_node policy is forgotten, in a program that uses all that a reducer has.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"
#ifdef HERRING_TWIN
#include "herring/intra_node/shared_memory.hpp"
#endif

using element = float;
using gradients = herring::reducer<element, herring::transport::inproc, herring::update::sum,
                                   herring::intra_node::shared_memory>;

#include "train.hpp"
