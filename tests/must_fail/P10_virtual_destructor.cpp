// herring: must not compile: a policy with a virtual function.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct base {
    virtual ~base() = default;
};
struct with_base : base, herring::update::sum {};
struct alone : herring::update::sum {};

#ifndef HERRING_TWIN
using mine = pack<float, line, with_base>;
#else
using mine = pack<float, line, alone>;
#endif

#include "use.hpp"
