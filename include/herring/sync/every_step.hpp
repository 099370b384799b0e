// herring: every step exchanges: the default.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SYNC_EVERY_STEP_HPP
#define HERRING_SYNC_EVERY_STEP_HPP

#include "herring/base/config.hpp"
#include "herring/sync/sync.hpp"

namespace HERRING_NAMESPACE::sync {

/// Each step reduces gradients, so that replicas stay the same. The default.
struct every_step {
    using axis = axes::sync;
    static constexpr char const* name = "every_step";
};
static_assert(sync_policy<every_step>);

} // namespace HERRING_NAMESPACE::sync

#endif // HERRING_SYNC_EVERY_STEP_HPP
