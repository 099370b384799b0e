// herring: must not compile: a type that is no template.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
struct own {
    using axis = herring::axes::wire;
    using type = float;
};
#else
struct own {
    using axis = herring::axes::wire;
    template <class Element> using type = Element;
};
#endif

using mine = pack<float, line, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
