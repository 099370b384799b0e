// herring: must not compile: a period of 0 steps.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/sync/periodic.hpp"

#ifndef HERRING_TWIN
using mine = pack<float, line, herring::sync::every<0>>;
#else
using mine = pack<float, line, herring::sync::every<8>>;
#endif

#include "use.hpp"
