// herring: the update policy `logical_and`.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_UPDATE_LOGICAL_AND_HPP
#define HERRING_UPDATE_LOGICAL_AND_HPP

#include "herring/update/update.hpp"

#include <type_traits>

namespace HERRING_NAMESPACE::update {

/// 1 where no contribution is zero, else 0, as MPI's MPI_LAND.
///
/// Shape:   the result of each element is 0 or 1, on one rank alone too; integers only.
struct logical_and {
    using axis = axes::update;
    static constexpr char const* name = "logical_and";
    static constexpr update_facts facts{.takes_vectors = true};
    template <class Element>
    static constexpr bool supports = element_type<Element>&& std::is_integral_v<Element>;

    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc combine(Acc a, Acc b) noexcept {
        return ((a != 0) & (b != 0)) ? one<Acc> : Acc{};
    }
    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc finish(Acc total, int) noexcept {
        return (total != 0) ? one<Acc> : Acc{};
    }

  private:
    template <class Acc> static constexpr Acc one = Acc{} + lane<Acc>(1);
};

static_assert(update_policy<logical_and>);
static_assert(update_supports<logical_and, unsigned> && !update_supports<logical_and, float>);

} // namespace HERRING_NAMESPACE::update

#endif // HERRING_UPDATE_LOGICAL_AND_HPP
