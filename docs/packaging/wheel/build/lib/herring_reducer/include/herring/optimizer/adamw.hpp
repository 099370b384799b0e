// herring: the optimizer `adamw`: Adam with decoupled weight decay.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_OPTIMIZER_ADAMW_HPP
#define HERRING_OPTIMIZER_ADAMW_HPP

#include "herring/base/config.hpp"
#include "herring/base/lane_math.hpp"
#include "herring/optimizer/optimizer.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::optimizer {

/// Adam with decoupled weight decay: w ← (1 − rate · decay) · w;  m ← β₁ m + (1 − β₁) g;  v ← β₂ v + (1 − β₂)
/// g²; w −= rate / (1 − β₁ⁿ) · m / (√v / √(1 − β₂ⁿ) + ε), in step n.
///
/// Memory: two numbers a weight, at its owner.
/// Source: Loshchilov and Hutter, ICLR 2019.
struct adamw {
    using axis = axes::optimizer;
    static constexpr char const* name = "adamw";
    static constexpr optimizer_facts facts{.states = 2, .takes_vectors = true};

    struct hyper {
        double rate = 1e-3;
        double beta1 = 0.9, beta2 = 0.999;
        double epsilon = 1e-8;
        double decay = 0.01; ///< of the weights, a factor of the rate
    };
    static constexpr hyper_fault fault(hyper const& values) noexcept {
        return hyper_fault::negative("rate", values.rate)
            .or_else(hyper_fault::no_share("beta1", values.beta1))
            .or_else(hyper_fault::no_share("beta2", values.beta2))
            .or_else(hyper_fault::not_positive("epsilon", values.epsilon))
            .or_else(hyper_fault::not_finite("decay", values.decay));
    }
    template <class Number> struct prepared {
        Number rate;           // rate / (1 − β₁ⁿ)
        Number root;           // 1 / √(1 − β₂ⁿ), the factor of √v
        Number beta1, fresh1;  // β₁, 1 − β₁
        Number beta2, fresh2;  // β₂, 1 − β₂
        Number epsilon, keeps; // ε, 1 − rate · decay
    };
    template <class Number>
    static prepared<Number> prepare(hyper const& values, std::uint64_t step) noexcept {
        double const first = 1 - lanes::power(values.beta1, step),
                     second = 1 - lanes::power(values.beta2, step);
        return {.rate = static_cast<Number>(values.rate / first),
                .root = static_cast<Number>(1 / lanes::sqrt(second)),
                .beta1 = static_cast<Number>(values.beta1),
                .fresh1 = static_cast<Number>(1 - values.beta1),
                .beta2 = static_cast<Number>(values.beta2),
                .fresh2 = static_cast<Number>(1 - values.beta2),
                .epsilon = static_cast<Number>(values.epsilon),
                .keeps = static_cast<Number>(1 - lanes::product(values.rate, values.decay))};
    }
    template <class Lanes, class Number>
    static void step(Lanes& weight, Lanes gradient, Lanes* state, prepared<Number> const& with) noexcept {
        state[0] = lanes::product(state[0], with.beta1) + lanes::product(gradient, with.fresh1);
        state[1] = lanes::product(state[1], with.beta2) +
                   lanes::product(lanes::product(gradient, gradient), with.fresh2);
        Lanes const spread = lanes::product(lanes::sqrt(state[1]), with.root) + with.epsilon;
        weight = lanes::product(weight, with.keeps) - lanes::product(state[0], with.rate) / spread;
    }
};
static_assert(optimizer_policy<adamw>);

} // namespace HERRING_NAMESPACE::optimizer

#endif // HERRING_OPTIMIZER_ADAMW_HPP
