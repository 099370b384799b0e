// herring: must not compile: a wire format that cannot carry the element type.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct halves {
    using axis = herring::axes::wire;
    template <class Element>
    requires std::is_floating_point_v<Element>
    using type = std::uint16_t;
};

#ifndef HERRING_TWIN
using mine = pack<std::int32_t, line, herring::update::sum, halves>;
#else
using mine = pack<float, line, herring::update::sum, halves>;
#endif

#include "use.hpp"
