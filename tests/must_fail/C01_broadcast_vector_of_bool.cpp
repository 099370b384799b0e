// herring: must not compile: a broadcast of a std::vector<bool>, whose elements are bits.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/broadcast.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <array>
#include <vector>

using weights = herring::reducer<float, herring::transport::inproc>;

#ifndef HERRING_TWIN
using flags = std::vector<bool>;
#else
using flags = std::array<bool, 8>;
#endif
void send(weights& reduce, flags& which) { herring::broadcast(reduce, which, 0); }
