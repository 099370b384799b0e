// herring: must not compile: a type that names no axis.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct none {};

#ifndef HERRING_TWIN
using mine = pack<float, line, none>;
#else
using mine = pack<float, line>;
#endif

#include "use.hpp"
