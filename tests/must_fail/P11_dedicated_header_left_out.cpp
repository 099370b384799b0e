// herring: must not compile: the header of servers of their own is forgotten.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"
#ifdef HERRING_TWIN
#include "herring/serve.hpp"
#endif

using gradients = herring::reducer<float, herring::transport::inproc, herring::placement::dedicated>;

float first(gradients& reduce) { return reduce.tensor(0)[0]; }
