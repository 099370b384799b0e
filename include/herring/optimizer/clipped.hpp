// herring: `optimizer::clipped<Inner>`: gradients are scaled down where the norm of all of them is too great.
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

/// Any optimizer, yours too: g ← g · min(1, clip / ‖g‖) for each gradient before it goes on, where ‖g‖ is the norm of the
/// gradients of all tensors but frozen ones. `hyper` has the optimizer's values, and `clip`.
///
/// Cost:   two phases: weights travel when all gradients have been summed.
/// Source: Pascanu et al., ICML 2013.
template <class Inner> struct clipped : Inner {
    static_assert(!Inner::facts.clips, "herring::optimizer::clipped: this optimizer clips already");
    static constexpr char const* name = detail::composed_name<detail::clipped_word, Inner>.data();
    static constexpr optimizer_facts facts = detail::with_clip(Inner::facts);
    struct hyper : Inner::hyper {
        double clip = 1; ///< the greatest norm; of a group's own, for its gradients
    };
    static constexpr hyper_fault fault(hyper const& values) noexcept {
        return detail::fault_of<Inner>(values).or_else(
            values.clip > 0 ? hyper_fault{} : hyper_fault{"clip", values.clip, "be more than 0"});
    }
};

} // namespace HERRING_NAMESPACE::optimizer

#endif // HERRING_OPTIMIZER_CLIPPED_HPP
