// herring: the optimizer `nesterov`: gradient descent with Nesterov momentum.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_OPTIMIZER_NESTEROV_HPP
#define HERRING_OPTIMIZER_NESTEROV_HPP

#include "herring/base/config.hpp"
#include "herring/base/lane_math.hpp"
#include "herring/optimizer/momentum.hpp"
#include "herring/optimizer/optimizer.hpp"

namespace HERRING_NAMESPACE::optimizer {

/// Gradient descent with Nesterov momentum: m ← momentum · m + g + decay · w;  w −= rate · (g + decay · w +
/// momentum · m).
///
/// Memory: one number a weight, at its owner.
/// Source: Nesterov, 1983; in the form of Sutskever et al., ICML 2013.
struct nesterov : momentum { // with the hyper values of momentum
    static constexpr char const* name = "nesterov";

    template <class Lanes, class Number>
    static void step(Lanes& weight, Lanes gradient, Lanes* state, prepared<Number> const& with) noexcept {
        gradient = gradient + lanes::product(weight, with.decay);
        state[0] = lanes::product(state[0], with.momentum) + gradient;
        weight = weight - lanes::product(gradient + lanes::product(state[0], with.momentum), with.rate);
    }
};
static_assert(optimizer_policy<nesterov>);

} // namespace HERRING_NAMESPACE::optimizer

#endif // HERRING_OPTIMIZER_NESTEROV_HPP
