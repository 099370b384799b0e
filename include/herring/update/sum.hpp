// herring: the update policy `sum`.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_UPDATE_SUM_HPP
#define HERRING_UPDATE_SUM_HPP

#include "herring/base/config.hpp"
#include "herring/update/update.hpp"

namespace HERRING_NAMESPACE::update {

/// For vectors of integers, on the host: the sum modulo 2^bits, as the scalars have it.
template <class Vector> constexpr Vector wrapping_sum(Vector a, Vector b) noexcept {
    typedef std::make_unsigned_t<lane<Vector>> bits __attribute__((vector_size(sizeof(Vector))));
    return Vector(bits(a) + bits(b));
}

/// Adds the contributions, in rank order; a type of your own by its operator+.
///
/// Shape:   ((x0 + x1) + x2) + ... per element, in the accumulator's type.
/// Errors:  none: integers wrap, modulo 2^32 or 2^64 in two's complement, and that is defined. So a total that fits is
///          right whatever the partial sums were; one that does not fit is not reported. Floats become infinite.
struct sum {
    using axis = axes::update;
    static constexpr char const* name = "sum";
    static constexpr update_facts facts{.takes_vectors = true, .with_finish = true};
    template <class Element> static constexpr bool supports = added<Element>;

    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc combine(Acc a, Acc b) noexcept {
        if constexpr (std::is_integral_v<Acc>) {
            using bits = std::make_unsigned_t<Acc>;
            return static_cast<Acc>(static_cast<bits>(a) + static_cast<bits>(b));
        } else if constexpr (std::is_integral_v<lane<Acc>>) {
            return wrapping_sum(a, b);
        } else {
            return a + b;
        }
    }
    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc finish(Acc total, int) noexcept {
        return total;
    }
    template <class Number, class Kernel> static constexpr void with_finish(int, Kernel&& kernel) noexcept {
        kernel(as_is{});
    }
};

static_assert(update_policy<sum>);

} // namespace HERRING_NAMESPACE::update

#endif // HERRING_UPDATE_SUM_HPP
