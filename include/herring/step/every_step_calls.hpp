// herring: the calls of a loop that suits every sync policy, by a reducer that exchanges gradients in every step: nothing.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_EVERY_STEP_CALLS_HPP
#define HERRING_STEP_EVERY_STEP_CALLS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/machine/time.hpp"

#include <chrono>
#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Weights are the program's, and the same on every rank: all update them by the same gradients. See `basic_lazy_reducer`.
template <class Element> struct every_step_calls {
    static constexpr bool due(std::size_t) noexcept { return true; }
    static constexpr bool synchronized(std::size_t) noexcept { return true; }
    void updated(std::size_t) noexcept {}
    void updated(std::size_t, std::span<Element>) noexcept {}
    void settle() noexcept {}
    status settle(std::chrono::milliseconds) noexcept { return {}; }
    status settle(time_point) noexcept { return {}; }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_EVERY_STEP_CALLS_HPP
