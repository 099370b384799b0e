// herring: must not compile: a trace whose constructor may throw.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include <vector>

#ifndef HERRING_TWIN
struct own {
    using axis = herring::axes::trace;
    own() : events(1024) {}
    void operator()(herring::trace_event, std::uint32_t) noexcept {}
    std::vector<int> events;
};
#else
struct own {
    using axis = herring::axes::trace;
    void operator()(herring::trace_event, std::uint32_t) noexcept {}
    std::vector<int> events; // set up through reduce.trace()
};
#endif

using mine = pack<float, line, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
