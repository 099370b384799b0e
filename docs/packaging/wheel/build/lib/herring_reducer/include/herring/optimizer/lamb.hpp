// herring: the optimizer `lamb`: Adam, with the rate of each tensor scaled to its weights.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_OPTIMIZER_LAMB_HPP
#define HERRING_OPTIMIZER_LAMB_HPP

#include "herring/base/config.hpp"
#include "herring/base/lane_math.hpp"
#include "herring/optimizer/optimizer.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::optimizer {

/// Adam with the rate of each tensor scaled to its weights: m and v as for `adamw`;  u = m̂ / (√v̂ + ε) +
/// decay · w; w −= rate · ‖w‖ / ‖u‖ · u, with the norms of the whole tensor. Where a norm is 0, the ratio is
/// 1.
///
/// Memory: three numbers a weight, at its owner: m, v and u.
/// Cost:   two phases, and between them the exchange of two numbers a tensor and rank.
/// Source: You et al., ICLR 2020; the ratio is not bounded.
struct lamb {
    using axis = axes::optimizer;
    static constexpr char const* name = "lamb";
    static constexpr optimizer_facts facts{.states = 2, .takes_vectors = true, .tensor_norms = true};

    struct hyper {
        double rate = 1e-3;
        double beta1 = 0.9, beta2 = 0.999;
        double epsilon = 1e-6;
        double decay = 0.01; ///< of the weights, part of the direction
    };
    static constexpr hyper_fault fault(hyper const& values) noexcept {
        return hyper_fault::negative("rate", values.rate)
            .or_else(hyper_fault::no_share("beta1", values.beta1))
            .or_else(hyper_fault::no_share("beta2", values.beta2))
            .or_else(hyper_fault::not_positive("epsilon", values.epsilon))
            .or_else(hyper_fault::not_finite("decay", values.decay));
    }
    template <class Number> struct prepared {
        Number rate;
        Number unbias;        // 1 / (1 − β₁ⁿ), the factor of m
        Number root;          // 1 / √(1 − β₂ⁿ), the factor of √v
        Number beta1, fresh1; // β₁, 1 − β₁
        Number beta2, fresh2; // β₂, 1 − β₂
        Number epsilon, decay;
    };
    template <class Number>
    static prepared<Number> prepare(hyper const& values, std::uint64_t step) noexcept {
        double const first = 1 - lanes::power(values.beta1, step),
                     second = 1 - lanes::power(values.beta2, step);
        return {.rate = static_cast<Number>(values.rate),
                .unbias = static_cast<Number>(1 / first),
                .root = static_cast<Number>(1 / lanes::sqrt(second)),
                .beta1 = static_cast<Number>(values.beta1),
                .fresh1 = static_cast<Number>(1 - values.beta1),
                .beta2 = static_cast<Number>(values.beta2),
                .fresh2 = static_cast<Number>(1 - values.beta2),
                .epsilon = static_cast<Number>(values.epsilon),
                .decay = static_cast<Number>(values.decay)};
    }
    template <class Lanes, class Number>
    static Lanes direction(Lanes weight, Lanes gradient, Lanes* state,
                           prepared<Number> const& with) noexcept {
        state[0] = lanes::product(state[0], with.beta1) + lanes::product(gradient, with.fresh1);
        state[1] = lanes::product(state[1], with.beta2) +
                   lanes::product(lanes::product(gradient, gradient), with.fresh2);
        Lanes const spread = lanes::product(lanes::sqrt(state[1]), with.root) + with.epsilon;
        return lanes::product(state[0], with.unbias) / spread + lanes::product(weight, with.decay);
    }
    template <class Number>
    static prepared<Number> adapt(prepared<Number> with, tensor_norms const& of) noexcept {
        if (of.weights > 0 && of.directions > 0)
            with.rate = static_cast<Number>(
                lanes::product(static_cast<double>(with.rate), of.weights / of.directions));
        return with;
    }
    template <class Lanes, class Number>
    static void step(Lanes& weight, Lanes direction, Lanes*, prepared<Number> const& with) noexcept {
        weight = weight - lanes::product(direction, with.rate);
    }
};
static_assert(optimizer_policy<lamb>);

} // namespace HERRING_NAMESPACE::optimizer

#endif // HERRING_OPTIMIZER_LAMB_HPP
