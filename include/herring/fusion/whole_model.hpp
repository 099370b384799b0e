// herring: one bucket for everything: no overlap with backward, fewest messages.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_FUSION_WHOLE_MODEL_HPP
#define HERRING_FUSION_WHOLE_MODEL_HPP

#include "herring/base/config.hpp"
#include "herring/fusion/fusion.hpp"

namespace HERRING_NAMESPACE::fusion {

/// All tensors leave together, when the last one is ready.
///
/// Shape:  n tensors → 1 bucket.
/// Cost:   fewest messages, no overlap with the caller's compute.
struct whole_model {
    using axis = axes::fusion;
    static constexpr char const* name = "whole_model";
    static constexpr bool closes(fusion_state const&) noexcept { return false; }
};
static_assert(fusion_policy<whole_model>);

} // namespace HERRING_NAMESPACE::fusion

#endif // HERRING_FUSION_WHOLE_MODEL_HPP
