// herring: must not compile: an ensemble over a transport with envelopes.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble.hpp"

using herring::combine::mean;
using herring::space::probability;
using herring::transport::tcp;

#ifndef HERRING_TWIN
using mine = herring::ensemble<float, mean<probability>, herring::transport::checked<tcp>>;
#else
using mine = herring::ensemble<float, mean<probability>, tcp>;
#endif

#include "use.hpp"
