// herring: must not compile: an axis that does not exist.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct compression {};
struct lossy {
    using axis = compression;
};

#ifndef HERRING_TWIN
using mine = pack<float, line, lossy>;
#else
using mine = pack<float, line>;
#endif

#include "use.hpp"
