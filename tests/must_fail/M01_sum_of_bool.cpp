// herring: must not compile: a sum of bool, which is not a number.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/update/rules.hpp"

#ifndef HERRING_TWIN
using mine = pack<bool, line, herring::update::sum>;
#else
using mine = pack<bool, line, herring::update::logical_or>;
#endif

#include "use.hpp"
