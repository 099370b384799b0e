// herring: must not compile: elements on the wire that own memory.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include <vector>

struct own {
    using axis = herring::axes::wire;
#ifndef HERRING_TWIN
    template <class Element> using type = std::vector<Element>;
#else
    template <class Element> using type = Element;
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
