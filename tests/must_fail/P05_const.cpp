// herring: must not compile: a const policy.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
using mine = pack<float, line const>;
#else
using mine = pack<float, line>;
#endif

#include "use.hpp"
