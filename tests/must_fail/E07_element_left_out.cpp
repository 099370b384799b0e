// herring: must not compile: an ensemble without an element type.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble.hpp"

using herring::combine::mean;
using herring::space::probability;

#ifndef HERRING_TWIN
using mine = herring::ensemble<mean<probability>>;
#else
using mine = herring::ensemble<float, mean<probability>>;
#endif

#include "use.hpp"
