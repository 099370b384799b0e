// herring: must not compile: the header of the intra_node policy is forgotten, which nvcc alone compiles.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"
#ifdef HERRING_TWIN
using joined = herring::intra_node::none;
#else
using joined = herring::intra_node::nvlink;
#endif

std::size_t use() { return sizeof(herring::reducer<float, herring::transport::inproc, joined>); }
