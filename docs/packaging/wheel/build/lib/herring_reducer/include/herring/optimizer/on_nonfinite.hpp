// herring: `optimizer::on_nonfinite<Inner, What>`: an optimizer with a rule for non-finite gradients.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_OPTIMIZER_ON_NONFINITE_HPP
#define HERRING_OPTIMIZER_ON_NONFINITE_HPP

#include "herring/base/config.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/policy/composed_name.hpp"

namespace HERRING_NAMESPACE::detail {

template <nonfinite What> struct nonfinite_word {
    static constexpr char const* word = What == nonfinite::fail   ? "nonfinite_fails"
                                        : What == nonfinite::pass ? "nonfinite_passes"
                                                                  : "nonfinite_skips_step";
};
constexpr optimizer_facts with_nonfinite(optimizer_facts facts, nonfinite what) noexcept {
    facts.on_nonfinite = what;
    return facts;
}

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::optimizer {

/// Any optimizer, user-defined too, with a rule for gradients that are not finite. Without one such a
/// gradient ends the world.
///
/// Cost: none; `nonfinite::skip_step` takes two phases: weights travel when all gradients have been summed.
template <class Inner, nonfinite What> struct on_nonfinite : Inner {
    static constexpr char const* name = detail::composed_name<detail::nonfinite_word<What>, Inner>.data();
    static constexpr optimizer_facts facts = detail::with_nonfinite(Inner::facts, What);
};

} // namespace HERRING_NAMESPACE::optimizer

#endif // HERRING_OPTIMIZER_ON_NONFINITE_HPP
