// herring: must not compile: an ensemble that is not told how to combine.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble.hpp"

using herring::combine::mean;
using herring::space::probability;

#ifndef HERRING_TWIN
using mine = herring::ensemble<float>;
#else
using mine = herring::ensemble<float, mean<probability>>;
#endif

#include "use.hpp"
