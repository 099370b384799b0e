// herring: must not compile: elements on the wire that own memory.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include <vector>

#ifndef HERRING_TWIN
struct own {
    using axis = herring::axes::wire;
    template <class Element> using type = std::vector<Element>;
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
