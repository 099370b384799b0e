// herring: must not compile: an ensemble with two quorums.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble.hpp"

using herring::combine::mean;
using herring::space::probability;

#ifndef HERRING_TWIN
using mine =
    herring::ensemble<float, mean<probability>, herring::quorum::at_least<2>, herring::quorum::at_least<3>>;
#else
using mine = herring::ensemble<float, mean<probability>, herring::quorum::at_least<3>>;
#endif

#include "use.hpp"
