// herring: must not compile: a trace that takes details, and does not say so.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::trace;
#ifdef HERRING_TWIN
    static constexpr herring::trace_facts facts{.details = true};
#else
    void operator()(herring::trace_event, std::uint32_t) noexcept {}
#endif
    void record(herring::trace_event, herring::trace_details const&) noexcept {}
};

using mine = pack<float, line, own>;

#include "use.hpp"
