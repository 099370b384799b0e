// herring: must not compile: an ensemble of rows of bool.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble.hpp"

using herring::combine::mean;
using herring::space::probability;
using herring::transport::tcp;

#ifndef HERRING_TWIN
using mine = herring::ensemble<bool, tcp, mean<probability>>;
#else
using mine = herring::ensemble<float, tcp, mean<probability>>;
#endif

#include "use.hpp"
