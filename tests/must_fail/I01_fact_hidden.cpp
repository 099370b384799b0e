// herring: must not compile: an intra_node policy that hides one of the facts.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own : herring::intra_node::none {
    using none::none;
#ifndef HERRING_TWIN
  private:
#endif
    using none::facts;
};
using mine = pack<float, line, own>;

#include "use.hpp"
