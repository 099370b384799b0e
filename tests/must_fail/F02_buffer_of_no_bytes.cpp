// herring: must not compile: a fusion buffer of no bytes.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/fusion/fusion.hpp"

#ifndef HERRING_TWIN
using mine = pack<float, line, herring::fusion::balanced_buffer<0>>;
#else
using mine = pack<float, line, herring::fusion::per_tensor>;
#endif

#include "use.hpp"
