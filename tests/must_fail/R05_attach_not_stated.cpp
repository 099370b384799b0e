// herring: must not compile: a trace with an attach that its facts leave out.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::trace;
#ifndef HERRING_TWIN
    static constexpr herring::trace_facts facts{.details = true};
#else
    static constexpr herring::trace_facts facts{.details = true, .attaches = true};
#endif
    void record(herring::trace_event, herring::trace_details const&) noexcept {}
    void attach(herring::trace_context const&) {}
};

using mine = pack<float, line, own>;

#include "use.hpp"
