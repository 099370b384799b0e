// herring: must not compile: the header of a list of rules is forgotten.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"
#ifdef HERRING_TWIN
#include "herring/update/any.hpp"
#endif

using mine = herring::reducer<float, herring::transport::inproc,
                              herring::update::any<herring::update::sum, herring::update::max>>::element_type;

mine use(mine x) { return x; }
