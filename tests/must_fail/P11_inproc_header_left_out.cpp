// herring: must not compile: the header of the transport is forgotten.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#ifdef HERRING_TWIN
#include "herring/transport/inproc.hpp"
#endif

std::size_t use() { return sizeof(herring::reducer<float, herring::transport::inproc>); }
