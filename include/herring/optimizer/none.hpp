// herring: no optimizer: gradients are reduced, and the program updates its weights.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_OPTIMIZER_NONE_HPP
#define HERRING_OPTIMIZER_NONE_HPP

#include "herring/base/config.hpp"
#include "herring/optimizer/optimizer.hpp"

namespace HERRING_NAMESPACE::optimizer {

/// Tensors made ready hold the reduced values after `wait()`. The default.
struct none {
    using axis = axes::optimizer;
    static constexpr char const* name = "none";
};
static_assert(optimizer_policy<none>);

} // namespace HERRING_NAMESPACE::optimizer

#endif // HERRING_OPTIMIZER_NONE_HPP
