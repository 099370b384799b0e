// herring: must not compile: a trace without the index.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::trace;
#ifndef HERRING_TWIN
    void operator()(herring::trace_event) noexcept {}
#else
    void operator()(herring::trace_event, std::uint32_t) noexcept {}
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
