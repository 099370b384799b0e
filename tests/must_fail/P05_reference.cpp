// herring: must not compile: a policy by reference.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

herring::update::sum sum;

#ifndef HERRING_TWIN
using mine = pack<float, line, decltype((sum))>;
#else
using mine = pack<float, line, decltype(sum)>;
#endif

#include "use.hpp"
