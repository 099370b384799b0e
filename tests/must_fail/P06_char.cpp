// herring: must not compile: tensors of char.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
using mine = pack<char, line, herring::update::sum>;
#else
using mine = pack<std::int32_t, line, herring::update::sum>;
#endif

#include "use.hpp"
