// herring: must not compile: a trace without the index.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#ifndef HERRING_TWIN
struct own {
    using axis = herring::axes::trace;
    void operator()(herring::trace_event) noexcept {}
};
#else
struct own {
    using axis = herring::axes::trace;
    void operator()(herring::trace_event, std::uint32_t) noexcept {}
};
#endif

using mine = pack<float, line, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
