// herring: must not compile: an average of integers, in a program that uses all that a reducer has: one error still.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <cstdint>

using element = std::int32_t;
#ifndef HERRING_TWIN
using gradients = herring::reducer<element, herring::transport::inproc>;
#else
using gradients = herring::reducer<element, herring::transport::inproc, herring::update::sum>;
#endif

#include "train.hpp"
