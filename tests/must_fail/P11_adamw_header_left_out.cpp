// herring: must not compile: the header of an optimizer is forgotten.
// SPDX-License-Identifier: Apache-2.0
#include "herring/reducer.hpp"
#include "herring/transport/inproc.hpp"
#ifdef HERRING_TWIN
#include "herring/optimizer/adamw.hpp"
#include "herring/training.hpp"
#endif

using mine = herring::reducer<float, herring::transport::inproc, herring::optimizer::adamw>::element_type;

mine use(mine x) { return x; }
