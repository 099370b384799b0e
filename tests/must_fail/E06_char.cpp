// herring: must not compile: an ensemble of rows of char.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble.hpp"

using herring::combine::mean;
using herring::space::probability;

#ifndef HERRING_TWIN
using mine = herring::ensemble<char, mean<probability>>;
#else
using mine = herring::ensemble<float, mean<probability>>;
#endif

#include "use.hpp"
