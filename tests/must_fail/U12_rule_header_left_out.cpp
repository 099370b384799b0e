// herring: must not compile: a list with a rule whose header is not included.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/policy/names.hpp"
#include "herring/update/any.hpp"

#ifndef HERRING_TWIN
using mine = pack<float, line, herring::update::any<herring::update::average, herring::update::moments>>;
#else
using mine = pack<float, line, herring::update::any<herring::update::average, herring::update::sum>>;
#endif

#include "use.hpp"
