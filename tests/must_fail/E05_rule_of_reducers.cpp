// herring: must not compile: an ensemble with an update rule.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble.hpp"
#include "herring/update/rules.hpp"

#ifndef HERRING_TWIN
using mine = herring::ensemble<float, herring::update::sum>;
#else
using mine = herring::ensemble<float, herring::combine::mean<herring::space::value>>;
#endif

#include "use.hpp"
