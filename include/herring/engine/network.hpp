// herring: moves executions along the routes between nodes, which are a closed list.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_NETWORK_HPP
#define HERRING_ENGINE_NETWORK_HPP

#include "herring/base/config.hpp"
#include "herring/engine/failure_state.hpp"
#include "herring/engine/operation.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail {

/// The routes between nodes over their windows (engine/core.hpp), in the order in which a step visits them. A route is made from
/// a core. It has `open()`, which posts the receives of the first window, `step(wanted)`, and `cursors()`: what is pending for an
/// execution besides messages.
template <class Core, class... Windows> class network_routes : Windows::template route_type<Core>... {
  public:
    HERRING_ALWAYS_INLINE explicit network_routes(Core& core) noexcept
        : Windows::template route_type<Core>(core)... {}

    HERRING_ALWAYS_INLINE void open() noexcept { (route_of<Windows>::open(), ...); }

    /// Does what can be done now; stops at the first work that it wants done, and when the engine fails.
    HERRING_ALWAYS_INLINE std::size_t step(failure_state const& failures, wanted_work& wanted) noexcept {
        std::size_t progress = 0;
        (void)((progress += route_of<Windows>::step(wanted), wanted.any() || failures.is_failing()) || ...);
        return progress;
    }

    HERRING_ALWAYS_INLINE std::uint32_t cursors(route path) const noexcept {
        return ((path == Windows::path ? route_of<Windows>::cursors() : 0) + ...);
    }

  private:
    template <class Of> using route_of = typename Of::template route_type<Core>;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_NETWORK_HPP
