// herring: must not compile: a trace that takes details, and may throw.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::trace;
    static constexpr herring::trace_facts facts{.details = true};
#ifndef HERRING_TWIN
    void record(herring::trace_event, herring::trace_details const&) {}
#else
    void record(herring::trace_event, herring::trace_details const&) noexcept {}
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
