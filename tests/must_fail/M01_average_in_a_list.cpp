// herring: must not compile: a list of rules, one of which does not take the element type.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/update/any.hpp"

#ifndef HERRING_TWIN
using mine = pack<int, line, herring::update::any<herring::update::sum, herring::update::average>>;
#else
using mine = pack<int, line, herring::update::any<herring::update::sum, herring::update::max>>;
#endif

#include "use.hpp"
