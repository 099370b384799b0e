// herring: must not compile: a list that has a rule twice.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/update/any.hpp"

#ifndef HERRING_TWIN
using mine =
    pack<float, line, herring::update::any<herring::update::sum, herring::update::max, herring::update::sum>>;
#else
using mine = pack<float, line, herring::update::any<herring::update::sum, herring::update::max>>;
#endif

#include "use.hpp"
