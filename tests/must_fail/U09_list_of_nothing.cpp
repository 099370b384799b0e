// herring: must not compile: a list of rules that lists none.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/update/any.hpp"

#ifndef HERRING_TWIN
using mine = pack<float, line, herring::update::any<>>;
#else
using mine = pack<float, line, herring::update::any<herring::update::sum>>;
#endif

#include "use.hpp"
