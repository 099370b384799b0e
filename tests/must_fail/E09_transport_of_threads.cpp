// herring: must not compile: an ensemble that names a transport whose header is included.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble.hpp"
#include "herring/transport/inproc.hpp"

using herring::combine::mean;
using herring::space::probability;

#ifndef HERRING_TWIN
using mine = herring::ensemble<float, mean<probability>, herring::transport::inproc>;
#else
using mine = herring::ensemble<float, mean<probability>>;
#endif

#include "use.hpp"
