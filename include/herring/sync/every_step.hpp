// herring: sync of every step.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SYNC_EVERY_STEP_HPP
#define HERRING_SYNC_EVERY_STEP_HPP

#include "herring/base/config.hpp"
#include "herring/sync/sync.hpp"

namespace HERRING_NAMESPACE::sync {

/// Exchanges gradients in every step: synchronous data parallelism, the same bits on every rank after each.
///
/// Cost:    none of its own; one reduction of all gradients a step.
struct every_step {
    using axis = axes::sync;
    static constexpr char const* name = "every_step";

    static constexpr bool due(std::uint64_t /*step*/) noexcept { return true; }
};
static_assert(sync_policy<every_step>);
static_assert(std::is_empty_v<every_step>);

} // namespace HERRING_NAMESPACE::sync

#endif // HERRING_SYNC_EVERY_STEP_HPP
