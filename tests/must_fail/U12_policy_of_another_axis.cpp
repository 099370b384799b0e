// herring: must not compile: a list of rules with a policy of another axis.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/update/any.hpp"

#ifndef HERRING_TWIN
using mine = pack<float, line, herring::update::any<herring::update::sum, herring::progress::thread>>;
#else
using mine = pack<float, line, herring::update::any<herring::update::sum>, herring::progress::thread>;
#endif

#include "use.hpp"
