// herring: waiting by sleeping.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WAITING_BLOCK_HPP
#define HERRING_WAITING_BLOCK_HPP

#include "herring/base/config.hpp"
#include "herring/waiting/waiting.hpp"

namespace HERRING_NAMESPACE::waiting {

/// Sleeps as soon as a poll finds nothing.
///
/// Cost:    no core while waiting; one wake-up (5 to 50 µs) for each time that something arrives.
struct block {
    using axis = axes::waiting;
    static constexpr char const* name = "block";

    constexpr wait_action next(std::uint32_t /*idle_rounds*/, std::int64_t /*idle_nanoseconds*/,
                               bool /*oversubscribed*/) const noexcept {
        return wait_action::sleep;
    }
};
static_assert(waiting_policy<block>);
static_assert(std::is_empty_v<block>);

} // namespace HERRING_NAMESPACE::waiting

#endif // HERRING_WAITING_BLOCK_HPP
