// herring: must not compile: a policy that is declared, but not defined.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

namespace my_models {
struct later;
struct now : herring::update::sum {};
} // namespace my_models

#ifndef HERRING_TWIN
using mine = pack<float, line, my_models::later>;
#else
using mine = pack<float, line, my_models::now>;
#endif

#include "use.hpp"
