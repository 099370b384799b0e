// herring: `optimizer::clipped<Inner>`: an optimizer whose gradients are scaled down to a greatest norm.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_OPTIMIZER_CLIPPED_HPP
#define HERRING_OPTIMIZER_CLIPPED_HPP

#include "herring/base/config.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/policy/composed_name.hpp"

namespace HERRING_NAMESPACE::detail {

struct clipped_word {
    static constexpr char const* word = "clipped";
};
constexpr optimizer_facts with_clip(optimizer_facts facts) noexcept {
    facts.clips = true;
    return facts;
}

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::optimizer {

/// Any optimizer, user-defined too, with clipped gradients: g ← g · min(1, clip / ‖g‖) before the step, where
/// ‖g‖ is the norm of the gradients of all tensors that are not frozen. `hyper` has the optimizer's values,
/// and `clip`.
///
/// Cost:   two phases: weights travel when all gradients have been summed.
/// Source: Pascanu et al., ICML 2013.
template <class Inner> struct clipped : Inner {
    static_assert(!Inner::facts.clips, "herring::optimizer::clipped: this optimizer clips already");
    static constexpr char const* name = detail::composed_name<detail::clipped_word, Inner>.data();
    static constexpr optimizer_facts facts = detail::with_clip(Inner::facts);
    struct hyper : Inner::hyper {
        double clip = 1; ///< the greatest norm; a group may have another one for its gradients
    };
    static constexpr hyper_fault fault(hyper const& values) noexcept {
        return detail::fault_of<Inner>(values).or_else(
            values.clip > 0 ? hyper_fault{} : hyper_fault{"clip", values.clip, "be more than 0"});
    }
};

} // namespace HERRING_NAMESPACE::optimizer

#endif // HERRING_OPTIMIZER_CLIPPED_HPP
