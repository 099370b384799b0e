// herring: must not compile: tensors of const elements.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
using mine = pack<float const, line>;
#else
using mine = pack<float, line>;
#endif

#include "use.hpp"
