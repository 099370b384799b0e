// herring: must not compile: the header of the transport is forgotten, and with it the provider's.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#ifdef HERRING_TWIN
#include "herring/transport/inproc.hpp"
using line = herring::transport::inproc;
#else
using line = herring::transport::efa;
#endif

std::size_t use() { return sizeof(herring::reducer<float, line>); }
