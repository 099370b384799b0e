// herring: no fusion: one bucket per tensor.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_FUSION_PER_TENSOR_HPP
#define HERRING_FUSION_PER_TENSOR_HPP

#include "herring/base/config.hpp"
#include "herring/fusion/fusion.hpp"

namespace HERRING_NAMESPACE::fusion {

/// Every tensor leaves as soon as it is ready.
///
/// Shape:  n tensors → n buckets.
/// Cost:   earliest start, most messages: each of a model's many tiny tensors costs a round trip.
struct per_tensor {
    using axis = axes::fusion;
    static constexpr char const* name = "per_tensor";
    static constexpr bool closes(fusion_state const&) noexcept { return true; }
};
static_assert(fusion_policy<per_tensor>);

} // namespace HERRING_NAMESPACE::fusion

#endif // HERRING_FUSION_PER_TENSOR_HPP
