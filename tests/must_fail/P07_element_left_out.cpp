// herring: must not compile: a pack without an element type.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
using mine = pack<line, herring::update::sum>;
#else
using mine = pack<float, line, herring::update::sum>;
#endif

#include "use.hpp"
