// herring: must not compile: the placement's header alone, in a program that uses all that a reducer has.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/placement/dedicated.hpp"
#include "herring/transport/inproc.hpp"
#ifdef HERRING_TWIN
#include "herring/serve.hpp"
#endif

using element = float;
using gradients = herring::reducer<element, herring::transport::inproc, herring::update::sum,
                                   herring::placement::dedicated>;

#include "train.hpp"
