// herring: must not compile: a pack without a transport.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
using mine = pack<float, herring::update::sum>;
#else
using mine = pack<float, herring::update::sum, line>;
#endif

#include "use.hpp"
