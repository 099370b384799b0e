// herring: an optimizer of weights that ranks have moved by themselves: it steps from where they began towards their mean.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_OPTIMIZER_ANCHORED_HPP
#define HERRING_OPTIMIZER_ANCHORED_HPP

#include "herring/base/config.hpp"
#include "herring/optimizer/optimizer.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::optimizer {

/// The step of `Outer` with the gradient anchor − mean: the weight is the anchor, what is summed are the ranks' weights.
///
/// Source: Douillard et al., "DiLoCo", 2023; Reddi et al., ICLR 2021 (adaptive federated optimization).
template <class Outer> struct anchored {
    using axis = axes::optimizer;
    static constexpr char const* name = Outer::name;
    static constexpr optimizer_facts facts = Outer::facts;
    using hyper = typename Outer::hyper;

    template <class Number> static auto prepare(hyper const& values, std::uint64_t step) noexcept {
        return Outer::template prepare<Number>(values, step);
    }
    template <class Lanes, class Prepared>
    static void step(Lanes& anchor, Lanes mean, Lanes* state, Prepared const& with) noexcept {
        Outer::step(anchor, anchor - mean, state, with);
    }
};

} // namespace HERRING_NAMESPACE::optimizer

namespace HERRING_NAMESPACE::detail {

/// The optimizer that a pack's reducer runs where contributions are summed: of its gradients, or its sync policy's outer one.
template <class Pack, class Sync> struct optimizer_of { using type = typename Pack::optimizer; };
template <class Pack, class Sync>
requires(Sync::facts.outer) //
    struct optimizer_of<Pack, Sync> {
    using type = optimizer::anchored<typename Sync::outer>;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_OPTIMIZER_ANCHORED_HPP
