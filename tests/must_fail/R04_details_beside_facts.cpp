// herring: must not compile: a fact of a trace beside its facts.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

struct own {
    using axis = herring::axes::trace;
#ifdef HERRING_TWIN
    static constexpr herring::trace_facts facts{.details = true};
    void record(herring::trace_event, herring::trace_details const&) noexcept {}
#else
    static constexpr bool details = true;
    void operator()(herring::trace_event, std::uint32_t) noexcept {}
#endif
};

using mine = pack<float, line, own>;

#include "use.hpp"
