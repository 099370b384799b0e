// herring: must not compile: an ensemble with an optimizer, whose header is not included either.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble.hpp"

#ifndef HERRING_TWIN
using mine =
    herring::ensemble<float, herring::combine::mean<herring::space::value>, herring::optimizer::adamw>;
#else
using mine = herring::ensemble<float, herring::combine::mean<herring::space::value>>;
#endif

#include "use.hpp"
