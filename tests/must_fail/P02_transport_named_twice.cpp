// herring: must not compile: two transports.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct other_line : line {};

#ifndef HERRING_TWIN
using mine = pack<float, line, other_line>;
#else
using mine = pack<float, line>;
#endif

#include "use.hpp"
