// herring: must not compile: a pointer to a policy.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
using mine = pack<float, line*>;
#else
using mine = pack<float, line>;
#endif

#include "use.hpp"
