// herring: must not compile: a built-in type among the policies.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
using mine = pack<float, line, int>;
#else
using mine = pack<float, line>;
#endif

#include "use.hpp"
