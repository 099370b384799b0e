// herring: must not compile: a list of rules within another one.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/update/any.hpp"

#ifndef HERRING_TWIN
using mine = pack<float, line,
                  herring::update::any<herring::update::any<herring::update::sum, herring::update::min>,
                                       herring::update::max>>;
#else
using mine =
    pack<float, line, herring::update::any<herring::update::sum, herring::update::min, herring::update::max>>;
#endif

#include "use.hpp"
