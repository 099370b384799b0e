// herring: waiting by spinning.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WAITING_SPIN_HPP
#define HERRING_WAITING_SPIN_HPP

#include "herring/base/config.hpp"
#include "herring/waiting/waiting.hpp"

namespace HERRING_NAMESPACE::waiting {

/// Polls without ever giving the core away.
///
/// Cost:    a whole core a waiting rank; the quickest answer there is, as long as every rank has a core of its own.
///          With more ranks than cores each waits for a time slice (milliseconds) of the one that spins: name
///          adaptive there.
struct spin {
    using axis = axes::waiting;
    static constexpr char const* name = "spin";

    constexpr wait_action next(std::uint32_t /*idle_rounds*/, std::int64_t /*idle_nanoseconds*/,
                               bool /*oversubscribed*/) const noexcept {
        return wait_action::pause;
    }
};
static_assert(waiting_policy<spin>);
static_assert(std::is_empty_v<spin>);

} // namespace HERRING_NAMESPACE::waiting

#endif // HERRING_WAITING_SPIN_HPP
