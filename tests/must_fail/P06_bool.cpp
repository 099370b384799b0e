// herring: must not compile: tensors of bool.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
using mine = pack<bool, line, herring::update::sum>;
#else
using mine = pack<std::int32_t, line, herring::update::sum>;
#endif

#include "use.hpp"
