// herring: must not compile: a trace whose constructor may throw.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include <vector>

struct own {
    using axis = herring::axes::trace;
#ifndef HERRING_TWIN
    own() : events(1024) {}
#endif
    void operator()(herring::trace_event, std::uint32_t) noexcept {}
    std::vector<int> events; // the twin's is set up through reduce.trace()
};

using mine = pack<float, line, own>;

#include "use.hpp"
