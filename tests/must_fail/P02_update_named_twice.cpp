// herring: must not compile: the same policy twice.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
using mine = pack<float, herring::update::sum, line, herring::update::sum>;
#else
using mine = pack<float, herring::update::sum, line>;
#endif

#include "use.hpp"
