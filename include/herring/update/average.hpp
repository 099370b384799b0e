// herring: the update policy `average`, the default.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_UPDATE_AVERAGE_HPP
#define HERRING_UPDATE_AVERAGE_HPP

#include "herring/base/config.hpp"
#include "herring/update/sum.hpp"
#include "herring/update/update.hpp"

namespace HERRING_NAMESPACE::update {

/// Adds the contributions in rank order and divides the total by the number of ranks, correctly rounded.
///
/// Shape:   (((x0 + x1) + x2) + ...) / ranks per element, in the accumulator's type; floating point only.
/// Cost:    one division an element; where ranks is a power of two, one multiplication, with the same bits.
struct average {
    using axis = axes::update;
    static constexpr char const* name = "average";
    static constexpr update_facts facts{.takes_vectors = true, .with_finish = true};
    template <class Element>
    static constexpr bool supports =
        element_type<Element>&& std::is_floating_point_v<lane<accumulator<Element>>>;

    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc combine(Acc a, Acc b) noexcept {
        return sum::combine(a, b);
    }
    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc finish(Acc total, int ranks) noexcept {
        return total / static_cast<lane<Acc>>(ranks);
    }

    /// Total times a power of two: exact but for the one rounding that the division would make as well.
    template <class Number> struct scaled {
        Number factor;
        template <class Acc> HERRING_HOST_DEVICE constexpr Acc operator()(Acc total) const noexcept {
            return total * factor;
        }
    };
    template <class Number> struct divided {
        Number divisor;
        template <class Acc> HERRING_HOST_DEVICE constexpr Acc operator()(Acc total) const noexcept {
            return total / divisor;
        }
    };
    /// Calls `kernel` with the cheaper of the two, decided once; ranks = 0 leaves the total as it is.
    template <class Number, class Kernel>
    static constexpr void with_finish(int ranks, Kernel&& kernel) noexcept {
        if ((ranks & (ranks - 1)) == 0)
            kernel(scaled<lane<Number>>{lane<Number>(1) / static_cast<lane<Number>>(ranks == 0 ? 1 : ranks)});
        else
            kernel(divided<lane<Number>>{static_cast<lane<Number>>(ranks)});
    }
};

/// What a pack that names no rule has: `average`, for tensors that are made ready. `all_reduce` wants a rule that is named,
/// so that MPI_SUM is not replaced by an average unnoticed.
struct unnamed_average : average {};

static_assert(update_policy<average> && update_policy<unnamed_average>);
static_assert(update_supports<average, float> && !update_supports<average, std::int32_t>);

} // namespace HERRING_NAMESPACE::update

#endif // HERRING_UPDATE_AVERAGE_HPP
