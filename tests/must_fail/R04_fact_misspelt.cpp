// herring: must not compile: a fact of a trace, misspelt. The compiler's own words name it.
// misspelt: detials
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::trace;
#ifndef HERRING_TWIN
    static constexpr herring::trace_facts facts{.detials = true};
#else
    static constexpr herring::trace_facts facts{.details = true};
#endif
    void record(herring::trace_event, herring::trace_details const&) noexcept {}
};

using mine = pack<float, line, own>;

#include "use.hpp"
