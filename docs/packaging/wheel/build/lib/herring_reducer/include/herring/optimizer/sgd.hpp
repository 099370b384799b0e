// herring: the optimizer `sgd`: stochastic gradient descent.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_OPTIMIZER_SGD_HPP
#define HERRING_OPTIMIZER_SGD_HPP

#include "herring/base/config.hpp"
#include "herring/base/lane_math.hpp"
#include "herring/optimizer/optimizer.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::optimizer {

/// Gradient descent: w −= rate · (g + decay · w).
///
/// Memory: none beside the weights.
struct sgd {
    using axis = axes::optimizer;
    static constexpr char const* name = "sgd";
    static constexpr optimizer_facts facts{.states = 0, .takes_vectors = true};

    struct hyper {
        double rate = 0.01;
        double decay = 0; ///< of the weights, added to the gradient
    };
    static constexpr hyper_fault fault(hyper const& values) noexcept {
        return hyper_fault::negative("rate", values.rate)
            .or_else(hyper_fault::not_finite("decay", values.decay));
    }
    template <class Number> struct prepared { Number rate, decay; };
    template <class Number> static prepared<Number> prepare(hyper const& values, std::uint64_t) noexcept {
        return {static_cast<Number>(values.rate), static_cast<Number>(values.decay)};
    }
    template <class Lanes, class Number>
    static void step(Lanes& weight, Lanes gradient, Lanes*, prepared<Number> const& with) noexcept {
        gradient = gradient + lanes::product(weight, with.decay);
        weight = weight - lanes::product(gradient, with.rate);
    }
};
static_assert(optimizer_policy<sgd>);

} // namespace HERRING_NAMESPACE::optimizer

#endif // HERRING_OPTIMIZER_SGD_HPP
