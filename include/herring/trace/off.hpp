// herring: no trace.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_OFF_HPP
#define HERRING_TRACE_OFF_HPP

#include "herring/base/config.hpp"
#include "herring/trace/trace.hpp"

namespace HERRING_NAMESPACE::trace {

/// Records nothing: empty, and its calls vanish.
struct off {
    using axis = axes::trace;
    static constexpr char const* name = "off";

    constexpr void operator()(trace_event, std::uint32_t) const noexcept {}
};
static_assert(trace_policy<off>);
static_assert(std::is_empty_v<off>);

} // namespace HERRING_NAMESPACE::trace

#endif // HERRING_TRACE_OFF_HPP
