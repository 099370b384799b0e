// herring: the optimizer `momentum`: gradient descent with momentum.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_OPTIMIZER_MOMENTUM_HPP
#define HERRING_OPTIMIZER_MOMENTUM_HPP

#include "herring/base/config.hpp"
#include "herring/base/lane_math.hpp"
#include "herring/optimizer/optimizer.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::optimizer {

/// Gradient descent with momentum: m ← momentum · m + g + decay · w;  w −= rate · m.
///
/// Memory: one number a weight, at its owner.
/// Source: Polyak, 1964; without dampening, as in the common frameworks.
struct momentum {
    using axis = axes::optimizer;
    static constexpr char const* name = "momentum";
    static constexpr optimizer_facts facts{.states = 1, .takes_vectors = true};

    struct hyper {
        double rate = 0.01;
        double momentum = 0.9;
        double decay = 0; ///< of the weights, added to the gradient
    };
    static constexpr hyper_fault fault(hyper const& values) noexcept {
        return hyper_fault::negative("rate", values.rate)
            .or_else(hyper_fault::no_share("momentum", values.momentum))
            .or_else(hyper_fault::not_finite("decay", values.decay));
    }
    template <class Number> struct prepared { Number rate, momentum, decay; };
    template <class Number> static prepared<Number> prepare(hyper const& values, std::uint64_t) noexcept {
        return {static_cast<Number>(values.rate), static_cast<Number>(values.momentum),
                static_cast<Number>(values.decay)};
    }
    template <class Lanes, class Number>
    static void step(Lanes& weight, Lanes gradient, Lanes* state, prepared<Number> const& with) noexcept {
        gradient = gradient + lanes::product(weight, with.decay);
        state[0] = lanes::product(state[0], with.momentum) + gradient;
        weight = weight - lanes::product(state[0], with.rate);
    }
};
static_assert(optimizer_policy<momentum>);

} // namespace HERRING_NAMESPACE::optimizer

#endif // HERRING_OPTIMIZER_MOMENTUM_HPP
