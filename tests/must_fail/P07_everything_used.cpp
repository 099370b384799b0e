// herring: must not compile: the element type left out, in a program that uses all that a reducer has: one error
// still.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

using element = float;
#ifndef HERRING_TWIN
using gradients = herring::reducer<herring::transport::inproc, herring::update::sum>;
#else
using gradients = herring::reducer<element, herring::transport::inproc, herring::update::sum>;
#endif

#include "train.hpp"
