// herring: the update policy `min`.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_UPDATE_MIN_HPP
#define HERRING_UPDATE_MIN_HPP

#include "herring/base/config.hpp"
#include "herring/update/update.hpp"

namespace HERRING_NAMESPACE::update {

/// Keeps the smallest contribution of each element.
///
/// A NaN wins over every number, so that no rank's NaN is lost. Between contributions that compare equal, +0
/// and -0 among them, the lowest rank's stays; so the result does not depend on how contributions were
/// grouped. A type of your own is compared by its operator<, or by `least(a, b)` that is declared beside it.
struct min {
    using axis = axes::update;
    static constexpr char const* name = "min";
    static constexpr update_facts facts{.takes_vectors = true, .with_finish = true};
    template <class Element> static constexpr bool supports = compared<Element>;

    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc combine(Acc a, Acc b) noexcept {
        if constexpr (std::is_floating_point_v<lane<Acc>>)
            return ((b < a) | (b != b)) ? b : a;
        else if constexpr (requires { least(a, b); })
            return least(a, b);
        else
            return (b < a) ? b : a;
    }
    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc finish(Acc total, int) noexcept {
        return total;
    }
    template <class Number, class Kernel> static constexpr void with_finish(int, Kernel&& kernel) noexcept {
        kernel(as_is{});
    }
};

static_assert(update_policy<min>);

} // namespace HERRING_NAMESPACE::update

#endif // HERRING_UPDATE_MIN_HPP
