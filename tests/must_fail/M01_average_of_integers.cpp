// herring: must not compile: integers with the default update rule.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
using mine = pack<std::int32_t, line>;
#else
using mine = pack<std::int32_t, line, herring::update::sum>;
#endif

#include "use.hpp"
