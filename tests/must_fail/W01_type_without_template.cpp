// herring: must not compile: a type that is no template.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::wire;
#ifndef HERRING_TWIN
    using type = float;
#else
    template <class Element> using type = Element;
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
